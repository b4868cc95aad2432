package main

import (
	"github.com/redis/rueidis"

	leaseq "leaseq.dev/go"
)

// pipeline adds in one pipeline or transaction of a connection of the user's own.
func pipeline(c *methodCall) (any, error) {
	option, err := rueidis.ParseURL(c.url)
	if err != nil {
		return nil, err
	}
	option.DisableRetry, option.DisableCache, option.ForceSingleClient = true, true, true
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var pipe leaseq.Pipeline
	var reads []func(rueidis.RedisResult) ([]leaseq.Added, error)
	for _, call := range c.args.list("calls") {
		var items []leaseq.NewItem
		for _, each := range call.list("items") {
			items = append(items, newItem(each, call.object("options")))
		}
		read, err := pipe.Add(c.queue(), items...)
		if err != nil {
			return nil, err
		}
		reads = append(reads, read)
	}
	commands := pipe.Commands(client)
	if c.args.flag("transaction") {
		commands = append([]rueidis.Completed{client.B().Multi().Build()}, commands...)
		commands = append(commands, client.B().Exec().Build())
	}
	results := client.DoMulti(c.ctx, commands...)
	if c.args.flag("transaction") {
		messages, err := results[len(results)-1].ToArray()
		if err != nil {
			return nil, err
		}
		results = results[:0]
		for _, each := range messages {
			results = append(results, rueidis.NewResult(each, nil))
		}
	}
	var answers []any
	for i, read := range reads {
		found, err := read(results[i])
		if err != nil {
			return nil, err
		}
		answers = append(answers, each(found, addedForm))
	}
	return answers, nil
}
