// Refuses options that do not exist, so that a misspelled one is not ignored.
import { BadArgumentError } from "./errors.js";

/** Throws BadArgumentError if `given` has a member that is not in `known`. `owner` is the subject of the message, such as "a worker has no option". */
export function refuseUnknown(given: object, known: object, owner: string): void {
  if (typeof given !== "object" || given === null) {
    throw new BadArgumentError(`${owner} ${JSON.stringify(given)}: give an object with ${namesOf(known)}`);
  }
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw new BadArgumentError(`${owner} ${JSON.stringify(unknown)}; it has ${namesOf(known)}`);
}

const namesOf = (known: object): string => Object.keys(known).join(", ");
