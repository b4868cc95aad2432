package leaseq

import (
	"slices"
	"time"
)

// The calls of each script: its keys and arguments. Nothing here sends.

func queueCall(s *script, keys queueKeys, args []string, more ...string) *call {
	return &call{s, append(slices.Clip(keys.of(s)), more...), args}
}

func leaseCall(queues []queueKeys, count int, duration time.Duration) *call {
	if len(queues) == 1 {
		return queueCall(leaseScript, queues[0], encodeLeaseArguments(count, duration))
	}
	var keys []string
	for _, each := range queues {
		keys = each.appendTo(keys, leaseAnyScript.moreKeys["queue"])
	}
	return &call{leaseAnyScript, keys, encodeLeaseAnyArguments(len(queues), count, duration)}
}

func completeCall(keys queueKeys, entries []Completion) (*call, error) {
	args, err := simpleEntries(entries)
	return queueCall(completeScript, keys, encodeCompleteArguments(args)), err
}

func completeAndLeaseCall(keys queueKeys, entries []Completion, count int, duration time.Duration) (*call, error) {
	args, err := simpleEntries(entries)
	return queueCall(completeAndLeaseScript, keys, encodeCompleteAndLeaseArguments(count, duration, args)), err
}

func simpleEntries(entries []Completion) ([][]string, error) {
	args := make([][]string, len(entries))
	for i, each := range entries {
		options, err := each.options()
		if err != nil {
			return nil, err
		}
		args[i] = encodeCompleteEntry(each.ID, each.Token, options)
	}
	return args, nil
}

func completeWithCall(keys queueKeys, entries []Completion) (*call, error) {
	targets := targetsOf(entries)
	number := make(map[string]int, len(targets))
	var more []string
	for i, each := range targets {
		number[each.prefix] = i + 1
		more = each.appendTo(more, completeWithScript.moreKeys["target queue"])
	}
	args := make([][]string, len(entries))
	for i, entry := range entries {
		options, err := entry.options()
		if err != nil {
			return nil, err
		}
		followUps := make([][]string, len(entry.FollowUps))
		for j, each := range entry.FollowUps {
			item, err := itemArgs(each.Item)
			if err != nil {
				return nil, err
			}
			followUps[j] = encodeCompleteWithFollowUp(number[each.Queue.keys.prefix], item)
		}
		args[i] = encodeCompleteWithEntry(entry.ID, entry.Token, options, followUps)
		if entry.keepsOutcome() {
			more = append(more, keys.resultKey(entry.ID))
		}
	}
	return queueCall(completeWithScript, keys, encodeCompleteWithArguments(args, len(targets)), more...), nil
}

func releaseCall(keys queueKeys, entries []Release) (*call, error) {
	var more []string
	args := make([][]string, len(entries))
	for i, each := range entries {
		options, err := encodeReleaseOptions(each.ReleaseOptions)
		if err != nil {
			return nil, err
		}
		args[i] = encodeReleaseEntry(each.ID, each.Token, options)
		if each.Keep != nil {
			more = append(more, keys.resultKey(each.ID))
		}
	}
	return queueCall(releaseScript, keys, encodeReleaseArguments(args), more...), nil
}

func outcomeCall(keys queueKeys, ids []string) *call {
	var more []string
	for _, each := range ids {
		more = append(more, keys.resultKey(each))
	}
	return queueCall(outcomeScript, keys, encodeOutcomeArguments(ids), more...)
}

func settleCall(keys queueKeys) *call { return queueCall(settleScript, keys, nil) }
