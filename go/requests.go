package leaseq

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// NewItem is an item to add. [Item] makes one.
type NewItem struct {
	// ID is 1 to 256 bytes of UTF-8 without NUL.
	ID string
	// Data is at most as long as the queue allows, 1 MiB unless it is configured.
	Data []byte
	// Options are nil where they are not given.
	Options AddOptions
}

// Item makes an item to add.
func Item(id string, data []byte, options ...AddOption) NewItem {
	return NewItem{id, data, addSettingsOf(options).AddOptions}
}

func addSettingsOf(options []AddOption) addSettings {
	var settings addSettings
	for _, each := range options {
		each.applyAdd(&settings)
	}
	return settings
}

// RandomID returns a new id.
func RandomID() string {
	bytes := make([]byte, 16)
	_, _ = rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

const maxIDBytes = 256

// DerivedID returns the id of a follow-up of an item: "<id>/<step>", the same whenever the item runs again, so that it is added once. If that is
// longer than an id may be, the SHA-256 of the item's id takes its place.
func DerivedID(id, step string) string {
	if derived := id + "/" + step; len(derived) <= maxIDBytes {
		return derived
	}
	digest := sha256.Sum256([]byte(id))
	return hex.EncodeToString(digest[:]) + "/" + step
}

// FollowUp is an item to add, to a queue of the same group, if and only if the call completes the item before it.
type FollowUp struct {
	Queue *Queue
	Item  NewItem
}

// Completion is an item to complete: [LeasedItem.Completion] makes one, or give id and token. Without Keep and Result nothing is kept, even if
// the item was added with a keep (LQ-CLIENT-7).
type Completion struct {
	ID    string
	Token int64
	CompleteWithOptions
	// FollowUps are at most 256, to at most 16 queues.
	FollowUps []FollowUp

	item *LeasedItem
}

// Release is an item to release: [LeasedItem.Releasing] makes one, or give id and token.
type Release struct {
	ID    string
	Token int64
	ReleaseOptions

	item *LeasedItem
}

// leaseRef is a lease that a call ends.
type leaseRef struct {
	token int64
	item  *LeasedItem
}

// keepsOutcome reports whether completing it keeps a result.
func (c Completion) keepsOutcome() bool { return c.Keep != nil || c.Result != nil }

// isSimple reports whether the script complete can do this. Otherwise it takes complete_with, which costs more.
func (c Completion) isSimple() bool { return !c.keepsOutcome() && len(c.FollowUps) == 0 }

// options of a completion: keep is sent with every result, and 0 keeps it as the item was added (LQ-CLIENT-7).
func (c Completion) options() ([]string, error) {
	options := c.CompleteWithOptions
	if c.keepsOutcome() && options.Keep == nil {
		options.Keep = new(time.Duration)
	}
	return encodeCompleteWithOptions(options)
}

func itemArgs(item NewItem) ([]string, error) {
	options, err := encodeAddOptions(item.Options)
	return encodeAddEntry(item.ID, item.Data, options), err
}

func allItemArgs(items []NewItem) ([][]string, error) {
	all := make([][]string, len(items))
	for i, each := range items {
		args, err := itemArgs(each)
		if err != nil {
			return nil, err
		}
		all[i] = args
	}
	return all, nil
}

// targetsOf are the queues of follow-ups, each once, in the order in which they are named first (LQ-CALL-13).
func targetsOf(entries []Completion) []queueKeys {
	var targets []queueKeys
	seen := map[string]bool{}
	for _, entry := range entries {
		for _, each := range entry.FollowUps {
			if keys := each.Queue.keys; !seen[keys.prefix] {
				seen[keys.prefix] = true
				targets = append(targets, keys)
			}
		}
	}
	return targets
}
