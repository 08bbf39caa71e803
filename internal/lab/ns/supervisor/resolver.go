//go:build linux

package supervisor

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// resolverPort is DNS's.
const resolverPort = 53

// nodeName is the node's own name for its guests.
const nodeName = "gateway.lab"

// nameTTL is short: a guest's address may change with its next start.
const nameTTL = 5

// resolveAt serves DNS at one of the node's addresses, over UDP and TCP, for as long as the lab lives. It stands in for a
// real resolver: it knows the guests by their host names and the node, and nothing else.
func (n *network) resolveAt(a netip.Addr) error {
	at := netip.AddrPortFrom(a, resolverPort)
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return errors.Join(err, udp.Close())
	}
	go func() {
		buffer := make([]byte, 4096)
		for {
			size, from, err := udp.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			if answer := n.answer(buffer[:size]); answer != nil {
				_, _ = udp.WriteToUDPAddrPort(answer, from)
			}
		}
	}()
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			go n.answerTCP(c)
		}
	}()
	return nil
}

func (n *network) answerTCP(c net.Conn) {
	defer func() { _ = c.Close() }()
	for {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, question); err != nil {
			return
		}
		answer := n.answer(question)
		if answer == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer answers a question, nil if it isn't one.
func (n *network) answer(message []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(message)
	if err != nil || head.Response {
		return nil
	}
	question, err := p.Question()
	if err != nil {
		return nil
	}
	addresses := n.lookup(strings.ToLower(strings.TrimSuffix(question.Name.String(), ".")))
	head.Response, head.RecursionAvailable, head.Authoritative = true, true, true
	if addresses == nil {
		head.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, head)
	b.EnableCompression()
	if b.StartQuestions() != nil || b.Question(question) != nil || b.StartAnswers() != nil {
		return nil
	}
	record := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: nameTTL}
	for _, a := range addresses {
		switch {
		case a.Is4() && question.Type == dnsmessage.TypeA:
			err = b.AResource(record, dnsmessage.AResource{A: a.As4()})
		case a.Is6() && question.Type == dnsmessage.TypeAAAA:
			err = b.AAAAResource(record, dnsmessage.AAAAResource{AAAA: a.As16()})
		}
		if err != nil {
			return nil
		}
	}
	answer, err := b.Finish()
	if err != nil {
		return nil
	}
	return answer
}

// lookup finds a name's addresses, nil if there is no such name.
func (n *network) lookup(name string) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name == nodeName {
		var all []netip.Addr
		for _, b := range n.bridges {
			all = append(all, b.gateway4.Addr(), b.gateway6.Addr())
		}
		return all
	}
	for _, h := range n.hosts {
		if !slices.Contains(h.names, name) {
			continue
		}
		all := []netip.Addr{}
		for _, p := range h.ports {
			all = append(all, p.owned...)
		}
		return all
	}
	return nil
}
