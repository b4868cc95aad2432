// Package leaseq is a client for leaseq, a work queue on Redis or Valkey whose items are leased and then completed.
//
// A [Client] opens queues. A [Queue] adds items and leases them; a [LeasedItem] is the right to work on one until a deadline. A
// [Worker] leases, calls a handler for each item, and completes or releases it.
//
// Every call takes a context. Its end ends a wait, and what had been leased by then is given back. Durations are [time.Duration], sent as
// the nearest millisecond; times are [time.Time], by the server's clock. Every error says whether the call may have taken effect:
// see [Error] and [IsDefinite].
package leaseq
