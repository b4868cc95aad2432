package main

import leaseq "leaseq.dev/go"

func outcome(c *methodCall) (any, error) {
	ids := c.args.ids()
	found, err := c.queue().Outcomes(c.ctx, ids...)
	forms := make([]any, len(found))
	for i, each := range found {
		forms[i] = outcomeForm(ids[i], each)
	}
	return forms, err
}

func waitOutcome(c *methodCall) (any, error) {
	id := c.args.id("id")
	var options []leaseq.WaitOption
	if timeout, given := c.timeout(); given {
		options = append(options, leaseq.Wait(timeout))
	}
	found, err := c.queue().WaitOutcome(c.ctx, id, options...)
	if err != nil {
		return nil, err
	}
	return outcomeForm(id, found), nil
}

func inspect(c *methodCall) (any, error) {
	ids := c.args.ids()
	found, err := c.queue().Inspect(c.ctx, ids...)
	forms := make([]any, len(found))
	for i, each := range found {
		forms[i] = infoForm(ids[i], each)
	}
	return forms, err
}

func list(c *methodCall) (any, error) {
	page, err := c.queue().List(c.ctx, leaseq.ListState(c.args.text("state")), c.args.number("offset"), c.args.number("limit"),
		leaseq.ListOrder(c.args.text("order")))
	if err != nil {
		return nil, err
	}
	items := each(page.Items, func(one leaseq.ListedItem) any {
		return object{"id": b64([]byte(one.ID)), "time": micros(one.Time)}
	})
	return object{"total": page.Total, "items": items}, nil
}

func deleteQueue(c *methodCall) (any, error) {
	deleted, err := c.queue().Delete(c.ctx)
	if err != nil {
		return nil, err
	}
	return object{"deleted": deleted}, nil
}

func configure(c *methodCall) (any, error) {
	var changes leaseq.ConfigureOptions
	for name, place := range map[string]**int{
		"max_data": &changes.MaxData, "max_items": &changes.MaxItems, "max_attempts": &changes.MaxAttempts,
	} {
		if c.args.has(name) {
			number := c.args.number(name)
			*place = &number
		}
	}
	return done(c.queue().Configure(c.ctx, changes))
}

func lightClean(c *methodCall) (any, error) {
	found, err := c.queue().LightClean(c.ctx)
	if err != nil {
		return nil, err
	}
	return object{
		"promoted": found.Promoted, "reclaimed": found.Reclaimed, "died": found.Died, "expired": found.Expired, "pruned": found.Pruned,
	}, nil
}

func deepClean(c *methodCall) (any, error) {
	found, err := c.queue().DeepClean(c.ctx, c.args.flag("dry_run"))
	if err != nil {
		return nil, err
	}
	for kind, count := range found {
		if count == 0 {
			delete(found, kind)
		}
	}
	return found, nil
}
