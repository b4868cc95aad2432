// Command adapter speaks the adapter protocol of the conformance suite for the Go client (conformance-tests/ADAPTER.md).
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	leaseq "leaseq.dev/go"
)

const capabilities = "core blocking many fused heartbeat schedule expiry headers outcome handoff dead_letters limits many_queues cancel " +
	"look registry live_workers worker clean configure delete promote pipeline cluster jobs job_worker job_chains job_schedules"

type object = map[string]any

// harnessError is what the adapter cannot do, whatever the client can.
type harnessError string

func (e harnessError) Error() string { return string(e) }

type request struct {
	ID    int             `json:"id"`
	Op    string          `json:"op"`
	URL   string          `json:"url"`
	Queue *string         `json:"queue"`
	Name  string          `json:"name"`
	Group *string         `json:"group"`
	Call  int             `json:"call"`
	Name2 string          `json:"method"`
	Args  json.RawMessage `json:"args"`
}

type program struct {
	mu      sync.Mutex
	url     string
	session *session
	running map[int]context.CancelFunc
	out     sync.Mutex
	// given is the client of rueidis, if there is one.
	given rueidis.Client
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "job-worker" {
		if err := runJobs(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	p := &program{running: map[int]context.CancelFunc{}}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			var r request
			if err := json.Unmarshal(line, &r); err != nil {
				p.answer(0, object{"harness": err.Error()})
				continue
			}
			if r.Op == "call" {
				// in the order of the requests, though each runs beside the others
				ctx, cancel := context.WithCancel(context.Background())
				p.mu.Lock()
				p.running[r.ID] = cancel
				p.mu.Unlock()
				go p.call(ctx, cancel, r)
			} else if r.Op == "close_client" {
				go p.handle(r)
			} else {
				p.handle(r)
			}
		}
		if err != nil {
			break
		}
	}
	if p.session != nil {
		p.session.client.Close()
	}
}

func (p *program) answer(id int, reply object) {
	reply["id"] = id
	text, err := json.Marshal(reply)
	if err != nil {
		text, _ = json.Marshal(object{"id": id, "harness": err.Error()})
	}
	p.out.Lock()
	defer p.out.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func (p *program) handle(r request) {
	reply, err := p.op(r)
	if err != nil {
		reply = failure(err, nil, 0)
	}
	p.answer(r.ID, reply)
}

func (p *program) op(r request) (object, error) {
	switch r.Op {
	case "hello":
		p.url = r.URL
		if err := p.begin(); err != nil {
			return nil, err
		}
		worker, err := jobWorker()
		if err != nil {
			return nil, err
		}
		client := object{"name": "leaseq", "version": leaseq.Version, "language": "Go"}
		return object{"ok": object{
			"protocol": 3, "client": client, "capabilities": strings.Fields(capabilities), "scripts": leaseq.Scripts(), "job_worker": worker,
		}}, nil
	case "open":
		return object{"ok": object{}}, p.session.open(*r.Queue, r.Name, r.Group)
	case "close":
		return object{"ok": object{}}, p.session.close(*r.Queue)
	case "close_client":
		before := p.session
		if err := p.begin(); err != nil {
			return nil, err
		}
		before.client.Close()
		return object{"ok": object{}}, nil
	case "cancel":
		p.mu.Lock()
		cancel := p.running[r.Call]
		p.mu.Unlock()
		if cancel != nil {
			cancel()
		}
		return object{"ok": object{}}, nil
	}
	return nil, harnessError("there is no op " + r.Op)
}

func (p *program) begin() error {
	client, err := p.connect()
	if err != nil {
		return err
	}
	p.session = &session{client: client, queues: map[string]*opened{}, leases: map[string]*leaseq.LeasedItem{}, loops: map[string]*loop{}}
	return nil
}

// connect opens a client: with the argument "given", on a rueidis client as an application has one.
func (p *program) connect() (*leaseq.Client, error) {
	if len(os.Args) != 2 || os.Args[1] != "given" {
		return leaseq.Open(p.url, leaseq.Dial(dial))
	}
	option, err := rueidis.ParseURL(p.url)
	if err != nil {
		return nil, err
	}
	option.DialCtxFn = func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return dial(ctx, "tcp", address)
	}
	if p.given, err = rueidis.NewClient(option); err != nil {
		return nil, err
	}
	return leaseq.NewFrom(p.given)
}

// dial takes the short form of an address that cases use as another name of a node: the resolver of Go does not know it.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, strings.Replace(address, "127.1:", "127.0.0.1:", 1))
}

// jobWorker is the command of the job worker program.
func jobWorker() ([]string, error) {
	own, err := os.Executable()
	return []string{own, "job-worker"}, err
}

func (p *program) call(ctx context.Context, cancel context.CancelFunc, r request) {
	defer func() {
		cancel()
		p.mu.Lock()
		delete(p.running, r.ID)
		p.mu.Unlock()
	}()
	defer func() {
		if problem := recover(); problem != nil {
			p.answer(r.ID, object{"harness": fmt.Sprint(problem)})
		}
	}()
	args, err := decodeArguments(r.Args)
	if err != nil {
		p.answer(r.ID, object{"harness": err.Error()})
		return
	}
	c := &methodCall{ctx: ctx, session: p.session, args: args, url: p.url}
	if r.Queue != nil {
		c.handle = *r.Queue
	}
	stop := c.session.closing(append(args.handles("queues"), c.handle), cancel)
	defer stop()
	run := methods[r.Name2]
	if run == nil {
		p.answer(r.ID, object{"harness": "there is no method " + r.Name2})
		return
	}
	answer, err := run(c)
	if err == nil {
		p.answer(r.ID, object{"ok": answer})
		return
	}
	if errors.Is(err, leaseq.ErrAborted) || errors.Is(err, leaseq.ErrClosed) {
		p.answer(r.ID, object{"cancelled": true})
		return
	}
	p.answer(r.ID, failure(err, answer, c.entries()))
}

// failure is the client's error; entries is how many a call has that was not split.
func failure(err error, answers any, entries int) object {
	var failed *leaseq.Error
	if !errors.As(err, &failed) {
		return object{"harness": fmt.Sprintf("%T: %v", err, err)}
	}
	doubt := inDoubt(err)
	if doubt < 0 {
		doubt = entries
	}
	if failed.Definite {
		doubt = 0
	}
	var code any
	if strings.HasPrefix(failed.Code, "LEASEQ_") {
		code = failed.Code
	}
	if answers == nil {
		answers = []any{}
	}
	return object{"error": object{"code": code, "definite": failed.Definite, "message": err.Error(), "answers": answers, "in_doubt": doubt}}
}

// inDoubt is what a partial error says, -1 for another error.
func inDoubt(err error) int {
	var (
		completed *leaseq.PartialError[bool]
		handed    *leaseq.PartialError[leaseq.Completed]
		added     *leaseq.PartialError[leaseq.Added]
		released  *leaseq.PartialError[leaseq.Released]
		states    *leaseq.PartialError[leaseq.State]
		times     *leaseq.PartialError[moment]
		outcomes  *leaseq.PartialError[leaseq.Outcome]
		infos     *leaseq.PartialError[leaseq.ItemInfo]
	)
	switch {
	case errors.As(err, &completed):
		return completed.InDoubt
	case errors.As(err, &handed):
		return handed.InDoubt
	case errors.As(err, &added):
		return added.InDoubt
	case errors.As(err, &released):
		return released.InDoubt
	case errors.As(err, &states):
		return states.InDoubt
	case errors.As(err, &times):
		return times.InDoubt
	case errors.As(err, &outcomes):
		return outcomes.InDoubt
	case errors.As(err, &infos):
		return infos.InDoubt
	}
	return -1
}
