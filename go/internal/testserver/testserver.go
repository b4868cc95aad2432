// Package testserver starts a server for tests.
package testserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Run runs tests on a server of their own, whose URL is written to url. They fail if a goroutine is left behind them.
func Run(m *testing.M, url *string) int {
	folder, err := os.MkdirTemp("", "leaseq-go-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	port := FreePort()
	stop := Start(folder, "--port", port, "--unixsocket", filepath.Join(folder, "socket"))
	defer stop()
	*url = "redis://127.0.0.1:" + port
	Await("127.0.0.1:" + port)
	code := m.Run()
	// rueidis looks at the slots of a cluster a second later, also behind Close
	if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1")); err != nil && code == 0 {
		fmt.Println("FAIL: behind all tests,", err)
		return 1
	}
	return code
}

// serverProgram is a server of the cache that `make servers` fills.
func serverProgram() string {
	cache := os.Getenv("LEASEQ_SERVERS_DIR")
	if cache == "" {
		_, own, _, _ := runtime.Caller(0)
		cache = filepath.Join(filepath.Dir(own), "../../../.servers")
	}
	name := os.Getenv("LEASEQ_TEST_SERVER")
	if name == "" {
		name = "valkey-9.1.2"
	}
	program := filepath.Join(cache, "bin", name)
	if _, err := os.Stat(program); err != nil {
		panic(fmt.Sprintf("there is no %s: run make servers-newest", program))
	}
	return program
}

// Start starts a server with these arguments, and returns a function that ends it.
func Start(folder string, arguments ...string) (stop func()) {
	started := exec.Command(serverProgram(), append(arguments, "--save", "", "--dir", folder)...)
	if err := started.Start(); err != nil {
		panic(err)
	}
	return func() {
		_ = started.Process.Kill()
		_ = started.Wait()
	}
}

// FreePort returns a port that nothing listens on.
func FreePort() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// Await waits until a server takes connections.
func Await(address string) {
	for range 500 {
		if connected, err := net.Dial("tcp", address); err == nil {
			connected.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	panic("the server does not start at " + address)
}
