// Package jobs runs functions as jobs in other processes, in Go or in the other languages of leaseq: what Go enqueues, Python and TypeScript run,
// and the other way round.
//
//	app := jobs.New(client)
//	send := jobs.Define(app, "mail.send", func(ctx context.Context, to string) (string, error) { ... })
//	handle, err := send.Enqueue(ctx, "a@example.org")
//	receipt, err := handle.Result(ctx)
//
// A program that runs the jobs of its functions calls [App.Worker].
package jobs
