// River, on PostgreSQL.
//
// Settings:
// - the settings of `river bench`, its benchmark: `FetchCooldown` 2 ms, `FetchPollInterval` 20 ms, `MaxWorkers` 2,000. The defaults
//   (100 ms, 1 s) end at 1,000 jobs a second with 100 workers
// - the driver riverpgxv5 with the pool of pgx at its defaults
// - bulk: `InsertManyFast`, which copies, 500 at a time
// - finished jobs are kept for a day, which is the default
// - PostgreSQL runs with its default settings, but without `fsync`, `synchronous_commit` and `full_page_writes`: the Redis server writes
//   to no disk either
//
// Reference: https://riverqueue.com/docs, https://pkg.go.dev/github.com/riverqueue/river,
// https://github.com/riverqueue/river/blob/master/cmd/river/riverbench/river_bench.go

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// migrating is the advisory lock of an adapter that makes River's tables: a producer and a worker may start together.
const migrating = 23

type handleArgs struct {
	Data string `json:"data"`
}

func (handleArgs) Kind() string { return "handle" }

func runRiver(o orders) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", o.PostgresPort))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate(ctx, pool); err != nil {
		return err
	}
	config := &river.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	if o.produces() {
		return insert(ctx, pool, config)
	}
	return workRiver(ctx, o, pool, config)
}

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", migrating); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", migrating)
	return err
}

func insert(ctx context.Context, pool *pgxpool.Pool, config *river.Config) error {
	client, err := river.NewClient[pgx.Tx](riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}
	return produce(
		func(j job) error {
			_, err := client.Insert(ctx, handleArgs{j.data}, nil)
			return err
		},
		inParts(500, func(part []job) error {
			params := make([]river.InsertManyParams, len(part))
			for i, j := range part {
				params[i].Args = handleArgs{j.data}
			}
			_, err := client.InsertManyFast(ctx, params)
			return err
		}),
	)
}

func workRiver(ctx context.Context, o orders, pool *pgxpool.Pool, config *river.Config) error {
	left, err := newTraces(o)
	if err != nil {
		return err
	}
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, river.WorkFunc(func(_ context.Context, j *river.Job[handleArgs]) error {
		return work(o, left, j.Args.Data)
	}))
	config.FetchCooldown, config.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.concurrency(2_000)}}
	client, err := river.NewClient[pgx.Tx](riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	<-client.Stopped()
	return nil
}
