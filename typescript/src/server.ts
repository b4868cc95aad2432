// How a caller names a server: a URL, options of ioredis, or an instance of it. connection.ts connects by the options that are
// read here. What is not understood is refused by name, and never taken for localhost (LQ-CLIENT-27).
import { Redis, type RedisOptions } from "ioredis";
import { BadArgumentError } from "./errors.js";

/** An instance of ioredis, of any version. Its options are read, and it is not used itself. */
export interface RedisInstance {
  readonly options: object;
  readonly isCluster: boolean;
  sendCommand(...args: never[]): unknown;
}

/**
 * How to reach a server: a URL, options of ioredis, or an instance of `Redis` or `Cluster`, whose options are read and which is not
 * used. Options name a `host`, a `port`, a `path` or `sentinels`.
 */
export type Server = string | URL | RedisOptions | RedisInstance;

/** The URLs that ioredis takes, and the path of a socket. */
const URL_PATTERN = /^(rediss?:\/\/|\/(?!\/))/;
/** The options of ioredis that a query of a URL can set: their values are text. */
const URL_OPTIONS = new Set(["db", "family", "connectionName", "username", "password"]);
/** The options of a node that its URL can set. */
const NODE_OPTIONS = new Set(["username", "password", "tls"]);
const MAX_PORT = 65_535;

/** All options of ioredis, and nothing else: the compiler compares. */
const OPTION_NAMES: Readonly<Record<keyof RedisOptions, true>> = {
  Connector: true,
  retryStrategy: true,
  commandTimeout: true,
  blockingTimeout: true,
  blockingTimeoutGrace: true,
  socketTimeout: true,
  keepAlive: true,
  noDelay: true,
  connectionName: true,
  disableClientInfo: true,
  clientInfoTag: true,
  username: true,
  password: true,
  db: true,
  autoResubscribe: true,
  autoResendUnfulfilledCommands: true,
  reconnectOnError: true,
  readOnly: true,
  stringNumbers: true,
  protocol: true,
  replyMapping: true,
  connectTimeout: true,
  monitor: true,
  maxRetriesPerRequest: true,
  maxLoadingRetryTime: true,
  enableAutoPipelining: true,
  autoPipeliningIgnoredCommands: true,
  offlineQueue: true,
  commandQueue: true,
  enableOfflineQueue: true,
  enableReadyCheck: true,
  lazyConnect: true,
  scripts: true,
  keyPrefix: true,
  host: true,
  port: true,
  family: true,
  path: true,
  disconnectTimeout: true,
  tls: true,
  name: true,
  role: true,
  sentinelUsername: true,
  sentinelPassword: true,
  sentinels: true,
  sentinelRetryStrategy: true,
  sentinelReconnectStrategy: true,
  preferredSlaves: true,
  sentinelCommandTimeout: true,
  enableTLSForSentinelMode: true,
  sentinelTLS: true,
  natMap: true,
  updateSentinels: true,
  sentinelMaxConnections: true,
  failoverDetector: true,
  himportFieldsets: true,
  showFriendlyErrorStack: true,
};

/** The options of ioredis for a connection to `server`; of a Cluster, to each of its nodes. Throws BadArgumentError. */
export function serverOptions(server: Server): readonly RedisOptions[] {
  if (typeof server === "string" || server instanceof URL) return [optionsOfUrl(String(server))];
  if (typeof server !== "object" || server === null) {
    throw new BadArgumentError(
      `a server is a URL, options of ioredis or an instance of it, not ${server === null ? "null" : typeof server}`,
    );
  }
  if (!isInstance(server)) return [checked(optionsGiven(server))];
  return server.isCluster ? optionsOfCluster(server) : [checked(knownOptions(server.options))];
}

/** Throws BadArgumentError without the URL and without the error about it, which hold the password (LQ-SAFE-3). */
function optionsOfUrl(url: string): RedisOptions {
  // ioredis takes any other text for the path of a socket or a host, and would show it in an error.
  if (!URL_PATTERN.test(url)) throw badUrl("use redis://, rediss:// or the path of a socket");
  const parsed = URL.canParse(url, "redis://socket/") ? new URL(url, "redis://socket/") : undefined;
  if (!parsed?.hostname)
    throw badUrl("it names no host, or a character of the password is not percent-encoded");
  if (!url.startsWith("/") && !/^\/?\d*$/.test(parsed.pathname)) {
    throw badUrl("behind the host comes the number of a database");
  }
  const unknown = [...parsed.searchParams.keys()].some((name) => !URL_OPTIONS.has(name));
  if (unknown)
    throw badUrl(`its query can set ${[...URL_OPTIONS].join(", ")}: give other options as an object`);
  let redis: Redis;
  try {
    redis = new Redis(url, { lazyConnect: true });
  } catch {
    throw badUrl("ioredis cannot read it");
  }
  return checked(redis.options);
}

const badUrl = (why: string): BadArgumentError =>
  new BadArgumentError(`the URL of the server is not valid: ${why}`);

function isInstance(server: object): server is RedisInstance {
  const { options, isCluster, sendCommand } = server as Partial<RedisInstance>;
  return typeof options === "object" && typeof isCluster === "boolean" && typeof sendCommand === "function";
}

/** Of the options of another version of ioredis, those that this one has too. */
function knownOptions(options: object): RedisOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => name in OPTION_NAMES));
}

/** What is read of an ioredis Cluster. It says nowhere else which nodes it was given. */
interface ClusterInstance {
  readonly startupNodes?: readonly (string | number | { host?: string; port?: number | string })[];
  readonly options: {
    redisOptions?: RedisOptions;
    keyPrefix?: string;
    natMap?: object;
    useSRVRecords?: boolean;
  };
}

/** How to reach each node that a Cluster was given. */
function optionsOfCluster(cluster: object): readonly RedisOptions[] {
  const { startupNodes, options } = cluster as ClusterInstance;
  const { redisOptions = {}, keyPrefix, natMap, useSRVRecords } = options;
  if (natMap || useSRVRecords) {
    throw new BadArgumentError(
      "a Cluster with natMap or useSRVRecords cannot be used: give the URLs of its nodes",
    );
  }
  if (!startupNodes?.length)
    throw new BadArgumentError("the Cluster names no nodes: give the URL of one or several");
  const common = keyPrefix ? { ...knownOptions(redisOptions), keyPrefix } : knownOptions(redisOptions);
  return startupNodes.map((node) => {
    if (typeof node === "string") {
      const { host, port, ...ofUrl } = optionsOfUrl(URL_PATTERN.test(node) ? node : `redis://${node}`);
      const secrets = Object.entries(ofUrl).filter(([name, value]) => NODE_OPTIONS.has(name) && value);
      return checked({
        ...common,
        ...Object.fromEntries(secrets),
        host: host as string,
        port: port as number,
      });
    }
    const own = typeof node === "number" ? { port: node } : knownOptions(node);
    return checked({ host: "127.0.0.1", ...common, ...own });
  });
}

/** Options as the caller wrote them. ioredis would ignore what it does not know, and connect to localhost. */
function optionsGiven(given: RedisOptions): RedisOptions {
  const unknown = Object.keys(given).find((name) => !(name in OPTION_NAMES));
  if (unknown !== undefined) {
    throw new BadArgumentError(
      `ioredis has no option ${JSON.stringify(unknown)}: see RedisOptions, or give a URL`,
    );
  }
  const { host, port, path, sentinels, Connector } = given;
  const isUnset = "host" in given && !host && !path && !sentinels;
  if (isUnset || (!host && !port && !path && !sentinels && !Connector)) {
    throw new BadArgumentError("the options name no server: set host, path or sentinels");
  }
  return given;
}

/** Throws BadArgumentError for what ioredis would take for something else, or that this client cannot do. */
function checked(options: RedisOptions): RedisOptions {
  const { db, port, keyPrefix, sentinels } = options;
  if (keyPrefix?.length) {
    throw new BadArgumentError("keyPrefix cannot be used, since the keys are the protocol's: leave it out");
  }
  if (db !== undefined && db !== null && !isWhole(db, 0)) {
    throw new BadArgumentError("the number of the database (db) is a whole number from 0 on");
  }
  if (port !== undefined && port !== null && !isWhole(port, 1, MAX_PORT)) {
    throw new BadArgumentError(`port is a whole number from 1 to ${MAX_PORT}`);
  }
  if (
    sentinels &&
    !(Array.isArray(sentinels) && sentinels.length > 0 && sentinels.every(({ host }) => host))
  ) {
    throw new BadArgumentError("sentinels is an array with the host of each");
  }
  return options;
}

/** Whether a number, or its text, which ioredis takes too, is whole and within the limits. */
function isWhole(value: unknown, min: number, max = Number.MAX_SAFE_INTEGER): boolean {
  const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(number) && (number as number) >= min && (number as number) <= max;
}
