package redact

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// prefix is how many bytes of a form are looked up before it is compared.
const prefix = 4

// index finds forms in a text: a position costs one look into a bit field, and a comparison only where four bytes agree
// with a form's first. Forms are some thousand; an automaton over them would take a megabyte for each secret.
type index struct {
	begins  map[uint32][]form // longest first
	bits    [1 << 13]uint64   // which hashes of four bytes begin a form
	first   [256]bool         // which bytes begin one
	longest int               // of a form, with the line breaks that may stand in it
}

func newIndex(all []form) index {
	x := index{begins: map[uint32][]form{}}
	for _, f := range all {
		key := binary.LittleEndian.Uint32([]byte(f.text))
		x.begins[key] = append(x.begins[key], f)
		h := hash(key)
		x.bits[h>>6] |= 1 << (h & 63)
		x.first[f.text[0]] = true
		x.longest = max(x.longest, f.span())
	}
	for key := range x.begins {
		slices.SortFunc(x.begins[key], func(a, b form) int { return len(b.text) - len(a.text) })
	}
	return x
}

// breaks is how many line break characters an encoder may put into a form: two for each of at least 16 characters.
func (f form) breaks() int {
	if !f.wrapped {
		return 0
	}
	return 2 * (len(f.text)/16 + 1)
}

func (f form) span() int { return len(f.text) + f.breaks() }

func hash(key uint32) uint32 { return key * 2654435761 >> (32 - 19) }

// maybe says whether there is anything to look for.
func (x *index) maybe(text string) bool { return len(x.begins) > 0 && len(text) >= shortest }

// at returns the length of the longest form at the beginning of text, 0 if there is none; and whether a longer one may
// be there once more text is known.
func (x *index) at(text []byte) (length int, unfinished bool) {
	if len(text) == 0 || !x.first[text[0]] {
		return 0, false
	}
	if len(text) < prefix || broken(text[:prefix]) {
		return x.slowly(text)
	}
	return x.among(binary.LittleEndian.Uint32(text), text)
}

// among compares the forms that begin with key.
func (x *index) among(key uint32, text []byte) (length int, unfinished bool) {
	h := hash(key)
	if x.bits[h>>6]&(1<<(h&63)) == 0 {
		return 0, false
	}
	for _, f := range x.begins[key] {
		n, more := f.match(text)
		length, unfinished = max(length, n), unfinished || more
	}
	return length, unfinished
}

// slowly is at where the text is too short to look its beginning up, or where a line break stands in its first bytes: a
// form may have it there, or an encoder have put it there.
func (x *index) slowly(text []byte) (length int, unfinished bool) {
	var joined [prefix]byte
	n := 0
	for i := 0; i < min(len(text), 16*prefix) && n < prefix; i++ {
		if !isBreak(text[i]) {
			joined[n] = text[i]
			n++
		}
	}
	if len(text) >= prefix {
		length, unfinished = x.among(binary.LittleEndian.Uint32(text), text)
	}
	if len(text) >= prefix && n == prefix {
		l, more := x.among(binary.LittleEndian.Uint32(joined[:]), text)
		return max(length, l), unfinished || more
	}
	for _, forms := range x.begins {
		for _, f := range forms {
			if l, more := f.match(text); more || l > 0 {
				length, unfinished = max(length, l), unfinished || more
			}
		}
	}
	return length, unfinished
}

func broken(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

func isBreak(c byte) bool { return c == '\n' || c == '\r' }

// match compares a form with the beginning of text: how many bytes of it the form takes, 0 if it isn't there; or
// whether text ends before that can be told.
func (f form) match(text []byte) (length int, unfinished bool) {
	if !f.wrapped {
		n := min(len(text), len(f.text))
		if string(text[:n]) != f.text[:n] {
			return 0, false
		}
		if n < len(f.text) {
			return 0, true
		}
		return n, false
	}
	i, breaks := 0, f.breaks()
	for j := range len(f.text) {
		for j > 0 && i < len(text) && isBreak(text[i]) && breaks > 0 {
			i++
			breaks--
		}
		switch {
		case i == len(text):
			return 0, true
		case text[i] != f.text[j]:
			return 0, false
		}
		i++
	}
	return i, false
}
