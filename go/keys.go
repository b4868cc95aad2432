package leaseq

import (
	"regexp"
	"strings"
)

// registryKey is the SET of the queues that clients have used (LQ-REGISTRY-1).
const registryKey = "leaseq:queues"

// In Go `$` matches the end of the text only (LQ-KEY-2).
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

var registryEntryPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}:[A-Za-z0-9_.-]{1,100}$`)

// queueKeys are the names of the keys of a queue. Queues of one group share a hash slot (LQ-KEY-1).
type queueKeys struct {
	name, group, prefix string
}

func newKeys(name, group string) (queueKeys, error) {
	for _, part := range []string{name, group} {
		if !namePattern.MatchString(part) {
			return queueKeys{}, refused("not the name of a queue or group: %.120q", part)
		}
	}
	prefix := strings.NewReplacer("<group>", group, "<name>", name, "<key>", "").Replace(keyPattern)
	return queueKeys{name, group, prefix}, nil
}

func (k queueKeys) key(part string) string { return k.prefix + part }

func (k queueKeys) registryEntry() string { return k.group + ":" + k.name }

func (k queueKeys) resultKey(id string) string { return k.prefix + "result:" + id }

// appendTo appends the keys of several parts, as a script takes them.
func (k queueKeys) appendTo(keys []string, parts []string) []string {
	for _, part := range parts {
		keys = append(keys, k.prefix+part)
	}
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
