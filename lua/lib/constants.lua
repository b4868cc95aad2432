-- Numbers and formats with a name. A script and a function write the name, the server gets the value.

-- 2025-01-01, the start of the time that scores count from, and 2060-01-01: between them a double holds a score exactly.
local EPOCH_2025_US = 1735689600000000
local LATEST_TIME_US = 2840140800000000
local LATEST_TIME_MS = 2840140799999
-- 2^50 us, further apart than any two times: what a priority moves a score by.
local PRIORITY_STEP = 1125899906842624
-- 2^53, later than any time: nothing is due.
local NEVER = 9007199254740992
local LARGEST_INTEGER = 9007199254740991

local MAX_ENTRIES = 256
local MAX_TARGETS = 16
local MAX_QUEUES = 16
-- How many keys each target of complete_with brings, and each queue of lease_any.
local KEYS_PER_TARGET = 9
local KEYS_PER_QUEUE = 11
local MAX_FOLLOW_UPS = 256
local MAX_ID_BYTES = 256
local MAX_DIGITS = 16
local MAX_HEADERS = 16
local MAX_HEADER_NAME_BYTES = 107
local MAX_EXTRA_BYTES = 4096
local MAX_ERROR_BYTES = 8192
local MAX_LEASE_MS = 2592000000
-- Ten years, the longest delay, expiry and keep.
local MAX_SPAN_MS = 315360000000
-- 31 days, a day more than the longest lease.
local FAR_DEADLINE_US = 2678400000000
-- A waiter looks again after this long at the latest, so what is due within it is announced.
local WAIT_CAP_US = 4000000
-- How many due items and how many expired leases one lease moves.
local RECLAIM_LIMIT = 64

local DEFAULT_MAX_DATA = 1048576
-- A call reads about this much data at most: 200 items of 1 MiB in one call took 1.7 s.
local MAX_BATCH_BYTES = 1048576
local MAX_OUTCOME_BYTES = 4194304
-- Items of unknown size may be as large as this.
local UNKNOWN_SIZE = 4294967295
-- Of this many items on a batch takes the way that is better for many.
local LARGE_BATCH = 16

local NO_LIMITS = '\0\0\0\0\0\0\0\0\0\0'
-- 65535 in a record: no limit of attempts; 0: that of the queue.
local UNLIMITED_ATTEMPTS = 65535

-- format, flags, clock, next_due, largest, added, leases, limits
local STATE_FORMAT = '<BBddI4I6I6c10'
local STATE_BYTES = 44
-- The version that state, records and outcomes start with.
local FORMAT_VERSION = 1
-- Flags of a queue: 1, it is paused; 2, outcomes are kept.
local KEEPS_OUTCOMES = 2
local ALL_FLAGS = 3
-- max_data, max_items, max_attempts
local LIMITS_FORMAT = '<I4I4I2'
-- format, options, attempt, latest token, created
local RECORD_FORMAT = '<BBI4dd'
local RECORD_BYTES = 22
-- priority, max_attempts, keep, expires
local OPTIONS_FORMAT = '<bI2I6d'
local RECORD_WITH_OPTIONS_FORMAT = '<BBI4ddbI2I6d'
local RECORD_WITH_OPTIONS_BYTES = 39
-- Options of a record, which add up: it has some; an extra; its item dies when it expires.
local HAS_OPTIONS = 1
local HAS_EXTRA = 2
local DIES_ON_EXPIRY = 4
local ALL_OPTIONS = 7
-- The bytes of a record before its attempt, and where its token starts.
local BEFORE_ATTEMPT = 2
local TOKEN_AT = 7
-- Where the options of a record start, and where what follows its priority and limit of attempts does.
local OPTIONS_AT = 23
local KEEP_AT = 26
-- format, kind, attempt, token, created, ended; then the content
local OUTCOME_FORMAT = '<BBI4ddd'
local OUTCOME_BYTES = 30
local CONTENT_AT = 31
local RESULT = 1
local FAILURE = 2
-- What stands in a record from KEEP_AT on where the item has neither.
local NO_KEEP_NO_EXPIRY = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
