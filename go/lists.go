package leaseq

import "errors"

// Long lists, split into calls (LQ-CALL-8).

// chunks splits a list into parts that one call can take.
func chunks[T any](entries []T) [][]T {
	var found [][]T
	for len(entries) > maxEntries {
		found = append(found, entries[:maxEntries])
		entries = entries[maxEntries:]
	}
	if len(entries) > 0 {
		found = append(found, entries)
	}
	return found
}

// chunksOfHandOffs splits before the entry that does not fit; an entry is never split (LQ-CALL-11).
func chunksOfHandOffs(entries []Completion) [][]Completion {
	var found [][]Completion
	begin := 0
	for end := 1; end <= len(entries); end++ {
		if end-begin > 1 && !fitsInCall(entries[begin:end]) {
			found = append(found, entries[begin:end-1])
			begin = end - 1
		}
	}
	if begin < len(entries) {
		found = append(found, entries[begin:])
	}
	return found
}

func fitsInCall(entries []Completion) bool {
	followUps := 0
	for _, each := range entries {
		followUps += len(each.FollowUps)
	}
	return len(entries) <= maxEntries && followUps <= maxFollowUps && len(targetsOf(entries)) <= maxTargets
}

// runParts makes one call after the other and returns an answer for each entry. All are encoded before the first is sent: what the caller
// changes afterwards is not sent (LQ-CLIENT-26).
func runParts[E, T any](parts [][]E, prepare func([]E) (func() ([]T, error), error)) ([]T, error) {
	calls := make([]func() ([]T, error), len(parts))
	for i, each := range parts {
		call, err := prepare(each)
		if err != nil {
			return nil, err
		}
		calls[i] = call
	}
	var answers []T
	for i, call := range calls {
		found, err := call()
		if errors.Is(err, ErrNotDurable) {
			return append(answers, found...), err
		}
		if err != nil && len(calls) > 1 {
			return answers, partial(answers, len(parts[i]), err)
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, found...)
	}
	return answers, nil
}

// first is the one answer to one entry, also if that is not durable.
func first[T any](answers []T, err error) (T, error) {
	var none T
	if len(answers) == 0 || err != nil && !errors.Is(err, ErrNotDurable) {
		return none, err
	}
	return answers[0], err
}
