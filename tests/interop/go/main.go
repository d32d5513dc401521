// The Go module github.com/coder/websocket, as the client or the server of tests/interop/run.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

// How long a case may take.
const timeout = 120 * time.Second
const tooManyBytes = 16<<20 + 1

// A case, as tests/interop/run writes it.
type testCase struct {
	Name        string
	Path        string
	Compression string
	Messages    []message
	Fragmented  bool
	Command     *string // Sent after the messages.
	Bad         string  // Done after the command.
	PID         int
	Close       struct {
		By     string
		Code   websocket.StatusCode
		Reason *string
	}
	Verdict *verdict // What the server is to say of it.
}

type message struct {
	kind string
	size int
}

func (m *message) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&m.kind, &m.size})
}

// What a server says of the last connection.
type verdict struct {
	Code        websocket.StatusCode `json:"code"`
	Reason      string               `json:"reason"`
	Compression string               `json:"compression"`
}

func (m message) websocketType() websocket.MessageType {
	if m.kind == "text" {
		return websocket.MessageText
	}
	return websocket.MessageBinary
}

func (m message) payload() []byte {
	if m.kind == "text" {
		return []byte(strings.Repeat("aß€🌊", m.size/10) + strings.Repeat("x", m.size%10))
	}
	x, noise := uint32(1), make([]byte, 65521)
	for at := range noise {
		x = x*1664525 + 1013904223
		noise[at] = byte(x >> 24)
	}
	return bytes.Repeat(noise, m.size/len(noise)+1)[:m.size]
}

// sendFragments needs another goroutine to read the pongs.
func sendFragments(ctx context.Context, conn *websocket.Conn, kind websocket.MessageType, payload []byte) error {
	writer, err := conn.Writer(ctx, kind)
	if err != nil {
		return err
	}
	if _, err := writer.Write(payload[:1]); err != nil {
		return err
	}
	for _, fragment := range [][]byte{payload[1:1], payload[1:127], payload[127:]} {
		if err := conn.Ping(ctx); err != nil {
			return err
		}
		if _, err := writer.Write(fragment); err != nil {
			return err
		}
	}
	return writer.Close()
}

func sendBad(ctx context.Context, conn *websocket.Conn, bad string) {
	// An error is to be expected: the peer need not take all of it.
	switch bad {
	case "utf8":
		_ = conn.Write(ctx, websocket.MessageText, []byte("a\xffb"))
	case "big":
		_ = conn.Write(ctx, websocket.MessageBinary, make([]byte, tooManyBytes))
	}
}

func compressionMode(name string) websocket.CompressionMode {
	return map[string]websocket.CompressionMode{
		"message": websocket.CompressionNoContextTakeover,
		"context": websocket.CompressionContextTakeover,
	}[name]
}

func compression(header http.Header) string {
	extensions := header.Get("Sec-WebSocket-Extensions")
	switch {
	case extensions == "":
		return "none"
	case strings.Contains(extensions, "no_context_takeover"):
		return "message"
	}
	return "context"
}

func check(url string, test testCase) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, response, err := websocket.Dial(ctx, url+test.Path, &websocket.DialOptions{
		CompressionMode:      compressionMode(test.Compression),
		CompressionThreshold: 1,
	})
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	if agreed := compression(response.Header); agreed != test.Compression {
		return fmt.Errorf("agreed on %s", agreed)
	}
	for _, message := range test.Messages {
		if err := echo(ctx, conn, message, test.Fragmented); err != nil {
			return fmt.Errorf("%s of %d bytes: %w", message.kind, message.size, err)
		}
	}
	code := cmp.Or(test.Close.Code, websocket.StatusNoStatusRcvd)
	if test.Close.By == "client" {
		// Fails unless the answer has the same code.
		if err := conn.Close(code, *test.Close.Reason); err != nil {
			return err
		}
	} else if err := closedByServer(ctx, conn, test, code); err != nil {
		return err
	}
	if test.Verdict == nil {
		return nil
	}
	return checkVerdict(ctx, url, *test.Verdict)
}

func echo(ctx context.Context, conn *websocket.Conn, message message, fragmented bool) error {
	payload := message.payload()
	sent := make(chan error, 1)
	go func() {
		if fragmented {
			sent <- sendFragments(ctx, conn, message.websocketType(), payload)
		} else {
			sent <- conn.Write(ctx, message.websocketType(), payload)
		}
	}()
	kind, reply, err := conn.Read(ctx)
	if err != nil {
		return err
	}
	if kind != message.websocketType() || !bytes.Equal(reply, payload) {
		return errors.New("came back changed")
	}
	return <-sent
}

func closedByServer(ctx context.Context, conn *websocket.Conn, test testCase, code websocket.StatusCode) error {
	if test.Command != nil {
		if err := conn.Write(ctx, websocket.MessageText, []byte(*test.Command)); err != nil {
			return err
		}
	}
	if test.Bad == "stop" {
		if err := syscall.Kill(test.PID, syscall.SIGTERM); err != nil {
			return err
		}
	}
	go sendBad(ctx, conn, test.Bad)
	_, _, err := conn.Read(ctx)
	var received websocket.CloseError
	if !errors.As(err, &received) {
		return fmt.Errorf("%v instead of a close frame", err)
	}
	if received.Code != code || test.Close.Reason != nil && received.Reason != *test.Close.Reason {
		return fmt.Errorf("closed with %d %s", received.Code, received.Reason)
	}
	return nil
}

func checkVerdict(ctx context.Context, url string, expected verdict) error {
	conn, _, err := websocket.Dial(ctx, url+"/verdict", nil)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	_, text, err := conn.Read(ctx)
	if err != nil {
		return err
	}
	var received verdict
	if err := json.Unmarshal(text, &received); err != nil {
		return err
	}
	if received.Code != expected.Code || received.Reason != expected.Reason {
		return fmt.Errorf("the server received %s", text)
	}
	return nil
}

func client(url string) error {
	var cases []testCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		return err
	}
	var failed error
	for _, test := range cases {
		if err := check(url, test); err != nil {
			failed = errors.New("not all passed")
			fmt.Printf("FAILED  %s: %v\n", test.Name, err)
			continue
		}
		fmt.Printf("ok      %s\n", test.Name)
	}
	return failed
}

func server() error {
	var last atomic.Value // The chan verdict of the last connection.
	accept := func(response http.ResponseWriter, request *http.Request) {
		conn, err := websocket.Accept(response, request, &websocket.AcceptOptions{
			CompressionMode:      websocket.CompressionContextTakeover,
			CompressionThreshold: 1,
		})
		if err != nil {
			return // The client was told.
		}
		defer conn.CloseNow()
		conn.SetReadLimit(-1)
		ctx, cancel := context.WithTimeout(request.Context(), timeout)
		defer cancel()
		if request.URL.Path == "/verdict" {
			select {
			case <-ctx.Done():
			case received := <-last.Load().(chan verdict):
				text, _ := json.Marshal(received)
				_ = conn.Write(ctx, websocket.MessageText, text)
				_ = conn.Close(websocket.StatusNormalClosure, "")
			}
			return
		}
		ended := make(chan verdict, 1)
		last.Store(ended)
		received := serve(ctx, conn, request.URL.Path)
		ended <- verdict{received.Code, received.Reason, compression(response.Header())}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening on ws://%s\n", listener.Addr())
	return http.Serve(listener, http.HandlerFunc(accept))
}

// serve answers messages as the path asks, and returns what the peer closed with.
func serve(ctx context.Context, conn *websocket.Conn, path string) websocket.CloseError {
	for {
		kind, payload, err := conn.Read(ctx)
		if err != nil {
			received := websocket.CloseError{Code: websocket.StatusAbnormalClosure}
			errors.As(err, &received)
			return received
		}
		switch path {
		case "/fragments":
			go func() { _ = sendFragments(ctx, conn, kind, payload) }()
		case "/bad":
			go sendBad(ctx, conn, string(payload))
		case "/close":
			text, reason, _ := strings.Cut(string(payload), " ")
			code := websocket.StatusNoStatusRcvd
			if number, err := strconv.Atoi(text); err == nil {
				code = websocket.StatusCode(number)
			}
			if err := conn.Close(code, reason); err != nil {
				code = websocket.StatusAbnormalClosure
			}
			return websocket.CloseError{Code: code} // The answer has the same code.
		default:
			_ = conn.Write(ctx, kind, payload)
		}
	}
}

func main() {
	run := server
	if os.Args[1] == "client" {
		run = func() error { return client(os.Args[2]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
