package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// decodeParams reads a request's parameters: the query's, then the body's.
func decodeParams(req *http.Request, body []byte) (params, error) {
	out := params{}
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		query = url.Values{}
	}
	for name, values := range query {
		out[name] = strings.Join(values, "\x00")
	}
	if len(body) == 0 {
		return out, nil
	}
	if req.Method != http.MethodPost && req.Method != http.MethodPut {
		return nil, plainError(501, fmt.Sprintf("Unexpected content for method '%s'", req.Method), "")
	}
	kind, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	switch strings.TrimSpace(kind) {
	case "", "application/x-www-form-urlencoded":
		decodeForm(out, string(body))
		return out, nil
	case "application/json":
		return out, decodeJSON(out, body)
	case "multipart/form-data":
		return out, decodeMultipart(out, req, body)
	}
	return nil, plainError(506, fmt.Sprintf("upload 'Content-Type '%s' not implemented", kind), "")
}

// plainError is an answer whose body is just the text.
func plainError(status int, text, end string) error {
	body := text + end
	return &apiError{status: status, message: text, raw: &body}
}

// decodeForm reads a form the way the server does: of "a=b=c" the value is only "b". Values must be encoded whole.
func decodeForm(out params, body string) {
	for _, pair := range strings.FieldsFunc(body, func(r rune) bool { return r == '&' || r == ';' }) {
		parts := strings.Split(strings.ReplaceAll(pair, "+", " "), "=")
		name, value := unescape(parts[0]), ""
		if len(parts) > 1 {
			value = unescape(parts[1])
		}
		if before, ok := out[name]; ok {
			value = before + "\x00" + value
		}
		out[name] = value
	}
}

func unescape(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// decodeJSON reads a JSON object: true and false are 1 and 0.
func decodeJSON(out params, body []byte) error {
	var values map[string]any
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.UseNumber()
	if err := dec.Decode(&values); err != nil {
		return plainError(500, malformedJSON(string(body))+" at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934.", "\n")
	}
	for name, value := range values {
		switch v := value.(type) {
		case nil:
		case bool:
			out[name] = "0"
			if v {
				out[name] = "1"
			}
		case string:
			out[name] = v
		case []any:
			var items []string
			for _, item := range v {
				items = append(items, fmt.Sprint(item))
			}
			out[name] = strings.Join(items, ",")
		default:
			out[name] = fmt.Sprint(v)
		}
	}
	return nil
}

// malformedJSON is what the server's parser says.
func malformedJSON(body string) string {
	trimmed := strings.TrimLeft(body, " \t\r\n")
	if rest, ok := strings.CutPrefix(trimmed, "{"); ok && rest != "" {
		inner := strings.TrimLeft(rest, " \t\r\n")
		return fmt.Sprintf("'\"' expected, at character offset %d (before \"%s\")", len(body)-len(inner), inner)
	}
	return fmt.Sprintf("malformed JSON string, neither tag, array, object, number, string or atom, at character offset %d (before \"%s\")", len(body)-len(trimmed), trimmed)
}
