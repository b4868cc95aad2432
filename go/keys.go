package leaseq

import (
	"regexp"
	"strings"
	"sync"
)

// registryKey is the SET of the queues that clients have used (LQ-REGISTRY-1).
const registryKey = "leaseq:queues"

// In Go `$` matches the end of the text only (LQ-KEY-2).
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

var registryEntryPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}:[A-Za-z0-9_.-]{1,100}$`)

// queueKeys are the names of the keys of a queue. Queues of one group share a hash slot (LQ-KEY-1).
type queueKeys struct {
	name, group, prefix string
	// registryEntry is what stands for the queue in the registry.
	registryEntry string
	// ofScripts has the fixed keys of each script that was called: *script to []string.
	ofScripts *sync.Map
}

func newKeys(name, group string) (queueKeys, error) {
	for _, part := range []string{name, group} {
		if !namePattern.MatchString(part) {
			return queueKeys{}, refused("not the name of a queue or group: %.120q", part)
		}
	}
	prefix := strings.NewReplacer("<group>", group, "<name>", name, "<key>", "").Replace(keyPattern)
	return queueKeys{name, group, prefix, group + ":" + name, new(sync.Map)}, nil
}

func (k queueKeys) key(part string) string { return k.prefix + part }

func (k queueKeys) resultKey(id string) string { return k.prefix + "result:" + id }

// appendTo appends the keys of several parts, as a script takes them.
func (k queueKeys) appendTo(keys []string, parts []string) []string {
	for _, part := range parts {
		keys = append(keys, k.prefix+part)
	}
	return keys
}

// of returns the fixed keys of a script. They are not to be changed.
func (k queueKeys) of(s *script) []string {
	if found, known := k.ofScripts.Load(s); known {
		return found.([]string)
	}
	keys := k.appendTo(make([]string, 0, len(s.keys)), s.keys)
	k.ofScripts.Store(s, keys)
	return keys
}

// groupOfKey is the hash tag of a key, which determines its slot.
func groupOfKey(key string) string {
	_, behind, found := strings.Cut(key, "{")
	if tag, _, closed := strings.Cut(behind, "}"); found && closed && tag != "" {
		return tag
	}
	return ""
}
