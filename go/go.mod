module leaseq.dev/go

go 1.25.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/vmihailenco/msgpack/v5 v5.4.1
)

require (
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
