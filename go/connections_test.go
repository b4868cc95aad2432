package leaseq_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"

	leaseq "leaseq.dev/go"
	"leaseq.dev/go/internal/testserver"
)

func TestUnixSocket(t *testing.T) {
	folder := t.TempDir()
	t.Cleanup(testserver.Start(folder, "--port", "0", "--unixsocket", filepath.Join(folder, "socket")))
	path := filepath.Join(folder, "socket")
	eventually(t, "the server listens", func() bool {
		conn, err := net.Dial("unix", path)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	client, err := leaseq.Open("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	add(t, client.MustQueue("q"), "a")
}

// TestTLS has a server of TLS in front of the one of the tests.
func TestTLS(t *testing.T) {
	certificate, roots := newCertificate(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return
			}
			inner, err := net.Dial("tcp", serverURL[len("redis://"):])
			if err != nil {
				return
			}
			for _, pair := range [][2]net.Conn{{outer, inner}, {inner, outer}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
				}()
			}
		}
	}()
	client, err := leaseq.New(rueidis.ClientOption{
		InitAddress: []string{listener.Addr().String()},
		TLSConfig:   &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	queue := queueOf(t, client)
	add(t, queue, "a")
	if item := lease(t, queue); item.ID != "a" {
		t.Fatal(item)
	}
}

func newCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func TestSentinelFindsThePrimary(t *testing.T) {
	folder := t.TempDir()
	primary, port := testserver.FreePort(), testserver.FreePort()
	t.Cleanup(testserver.Start(folder, "--port", primary))
	testserver.Await("127.0.0.1:" + primary)
	config := filepath.Join(folder, "sentinel.conf")
	text := "port " + port + "\nsentinel monitor shop 127.0.0.1 " + primary + " 1\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(testserver.Start(folder, config, "--sentinel"))
	testserver.Await("127.0.0.1:" + port)
	// the first Sentinel is not there
	client, err := leaseq.Open("redis://127.0.0.1:" + testserver.FreePort() + "?addr=127.0.0.1:" + port + "&master_set=shop")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	queue := client.MustQueue("q")
	add(t, queue, "a")
	lease(t, queue)
}

func TestClientOfTheApplication(t *testing.T) {
	given, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{serverURL[len("redis://"):]}})
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	client, err := leaseq.NewFrom(given)
	if err != nil {
		t.Fatal(err)
	}
	queue := queueOf(t, client)
	time.AfterFunc(50*time.Millisecond, func() { _, _ = queue.Add(context.Background(), "a", []byte("x"), leaseq.Keep(time.Hour)) })
	item, err := queue.Lease(t.Context(), time.Minute, leaseq.Wait(10*time.Second))
	if err != nil || string(item.Data) != "x" {
		t.Fatal(item, err)
	}
	if completed, err := item.Complete(t.Context(), leaseq.Result([]byte("y"))); err != nil || !completed {
		t.Fatal(completed, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := queue.Lease(ctx, time.Minute, leaseq.Wait(leaseq.Forever)); !errors.Is(err, leaseq.ErrAborted) {
		t.Fatal(err)
	}
	client.Close()
	if err := given.Do(t.Context(), given.B().Ping().Build()).Error(); err != nil {
		t.Fatal("the client of the application is closed:", err)
	}
}
