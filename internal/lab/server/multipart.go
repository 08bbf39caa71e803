package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
)

// decodeMultipart reads an upload.
func decodeMultipart(out params, req *http.Request, body []byte) error {
	_, attributes, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil {
		return failf("unable to parse multipart/form-data: %v", err)
	}
	reader := multipart.NewReader(bytes.NewReader(body), attributes["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failf("unable to parse multipart/form-data: %v", err)
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return failf("unable to parse multipart/form-data: %v", err)
		}
		if name := part.FileName(); name != "" {
			out["filename"] = name
			// The server hands the handler a temporary file; here its name says all that is kept of it, the size.
			out["tmpfilename"] = fmt.Sprintf("/var/tmp/pveupload-%032x", len(content))
			continue
		}
		out[part.FormName()] = string(content)
	}
}
