/** Milliseconds on the monotonic clock of this process. Not the time of day. */
export const now = (): number => performance.now();
