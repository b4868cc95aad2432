package leaseq

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// node is a server to connect to: its name for look-ups, and how.
type node struct {
	name   string
	option rueidis.ClientOption
	// given is the application's client, in place of options.
	given rueidis.Client
}

// queryOptions are those that the query of a URL may set; rueidis ignores others.
var queryOptions = setOf("db", "addr", "skip_verify", "client_name", "master_set")

// optionsOfURL reads the URL of a server. Its errors do not name the URL, which may hold a password (LQ-SAFE-3).
func optionsOfURL(text string) (rueidis.ClientOption, error) {
	var none rueidis.ClientOption
	parsed, err := url.Parse(text)
	if err != nil {
		return none, refused("the URL of the server cannot be read: is a character of its user, password or host not percent-encoded?")
	}
	if !setOf("redis", "rediss", "valkey", "valkeys", "unix")[parsed.Scheme] {
		return none, refused("the URL of the server starts with redis://, rediss:// or unix://")
	}
	if parsed.Scheme != "unix" && parsed.Hostname() == "" {
		return none, refused("the URL of the server names no host")
	}
	for name := range parsed.Query() {
		if !queryOptions[name] {
			return none, refused("the query of the URL cannot set %.60q: give a rueidis.ClientOption", name)
		}
	}
	if parsed.Scheme != "unix" {
		parsed.Path = strings.TrimSuffix(parsed.Path, "/")
	}
	option, err := rueidis.ParseURL(parsed.String())
	if err != nil {
		return none, refused("the URL of the server is not valid: behind the host comes the number of a database")
	}
	return option, nil
}

// nodesOf are the servers that options name: one, those of a cluster, or with a master set one behind Sentinels.
func nodesOf(option rueidis.ClientOption) ([]*node, error) {
	if len(option.InitAddress) == 0 {
		return nil, refused("no server: set InitAddress")
	}
	if option.SelectDB < 0 {
		return nil, refused("the number of the database is 0 or more")
	}
	if option.ReplicaOnly || option.SendToReplicas != nil {
		return nil, refused("calls go to the primary: leave out ReplicaOnly and SendToReplicas")
	}
	if option.Sentinel.MasterSet != "" {
		return []*node{{name: "sentinel " + option.Sentinel.MasterSet, option: option}}, nil
	}
	var nodes []*node
	for _, address := range option.InitAddress {
		nodes = append(nodes, nodeAt(option, address))
	}
	return nodes, nil
}

func nodeAt(option rueidis.ClientOption, address string) *node {
	option.InitAddress = []string{address}
	return &node{name: address, option: option}
}

// redirected is the node of `MOVED <slot> <host>:<port>`, or ASK. Without a host it is the host of the node that replied.
func redirected(text string, sender *node) *node {
	words := strings.Fields(text)
	if len(words) < 3 || sender.given != nil {
		return sender
	}
	address := words[len(words)-1]
	colon := strings.LastIndex(address, ":") // an IPv6 address has colons (LQ-CLUSTER-4)
	if colon < 0 {
		return sender
	}
	host, port := address[:colon], address[colon+1:]
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return sender
	}
	if host == "" {
		host, _, _ = net.SplitHostPort(sender.option.InitAddress[0])
	}
	return nodeAt(sender.option, net.JoinHostPort(strings.Trim(host, "[]"), port))
}

// dial connects to the node within the limit: to the primary, if Sentinels know it.
func (n *node) dial(limit time.Duration, own bool) (*conn, error) {
	if n.given != nil {
		return takeConn(n.given, own), nil
	}
	if n.option.Sentinel.MasterSet == "" {
		return dialConn(n.option, limit)
	}
	until := time.Now().Add(limit)
	var last error
	for i, address := range n.option.InitAddress {
		// a part of the time for each, so that others are asked if one is silent (LQ-CLIENT-22)
		part := time.Until(until) / time.Duration(len(n.option.InitAddress)-i+1)
		primary, err := n.askSentinel(address, part)
		if err == nil {
			var opened *conn
			if opened, err = n.dialPrimary(primary, time.Until(until)/2); err == nil {
				return opened, nil
			}
		}
		last = err
	}
	return nil, unavailable(last, "no Sentinel of %d knows a primary that can be reached", len(n.option.InitAddress))
}

func (n *node) askSentinel(address string, limit time.Duration) (string, error) {
	option := n.option
	sentinel := option.Sentinel
	option.InitAddress = []string{address}
	option.Dialer, option.TLSConfig, option.SelectDB = sentinel.Dialer, sentinel.TLSConfig, 0
	option.Username, option.Password, option.ClientName = sentinel.Username, sentinel.Password, sentinel.ClientName
	option.AuthCredentialsFn = nil
	asked, err := dialConn(option, limit)
	if err != nil {
		return "", err
	}
	defer asked.close()
	reply, err := asked.do(limit, []string{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinel.MasterSet})
	if err != nil {
		return "", err
	}
	words, err := reply.AsStrSlice()
	if err != nil || len(words) != 2 {
		return "", unavailable(nil, "the Sentinel does not know the primary")
	}
	return net.JoinHostPort(words[0], words[1]), nil
}

func (n *node) dialPrimary(address string, limit time.Duration) (*conn, error) {
	opened, err := dialConn(nodeAt(n.option, address).option, limit)
	if err != nil {
		return nil, err
	}
	reply, err := opened.do(limit, []string{"ROLE"})
	if err == nil {
		if words, _ := reply.ToArray(); len(words) > 0 {
			if role, _ := words[0].ToString(); role == "master" {
				return opened, nil
			}
		}
		err = unavailable(nil, "the server is no primary")
	}
	opened.close()
	return nil, err
}
