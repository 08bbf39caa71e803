package conformance

import (
	"encoding/json"
	"testing"
)

func diffs(t *testing.T, want, got string) []string {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatal(err)
	}
	c := &comparison{learned: map[string]string{}}
	c.value("", "", w, g)
	return c.diffs
}

func TestValuesThatDifferFromRunToRunAreComparedByKind(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]string{
		"digest":         {`{"digest":"6d6162c958056ada159c54aa61cbdec7084096d6"}`, `{"digest":"0000000000000000000000000000000000000000"}`},
		"MAC":            {`{"net0":"name=eth0,hwaddr=BC:24:11:2C:F0:72"}`, `{"net0":"name=eth0,hwaddr=BC:24:11:00:00:01"}`},
		"UPID":           {`"UPID:pve1:000010F5:00041178:6B0E5325:vzclone:9000:admin@pve!admin:"`, `"UPID:pve1:00000001:00000002:00000003:vzclone:9000:admin@pve!admin:"`},
		"time":           {`{"starttime":1796101169}`, `{"starttime":5}`},
		"order of lists": {`[{"vmid":1},{"vmid":2}]`, `[{"vmid":2},{"vmid":1}]`},
		"content":        {`{"content":"rootdir,images"}`, `{"content":"images,rootdir"}`},
	} {
		if found := diffs(t, pair[0], pair[1]); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestWhatTheServerDecidesIsComparedExactly(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]string{
		"value":           {`{"memory":128}`, `{"memory":129}`},
		"type":            {`{"memory":128}`, `{"memory":"128"}`},
		"missing key":     {`{"a":1,"b":2}`, `{"a":1}`},
		"extra key":       {`{"a":1}`, `{"a":1,"b":2}`},
		"the UPID's task": {`"UPID:pve1:000010F5:00041178:6B0E5325:vzclone:9000:root@pam:"`, `"UPID:pve1:000010F5:00041178:6B0E5325:vzclone:9001:root@pam:"`},
		"null":            {`{"data":null}`, `{"data":[]}`},
		"length":          {`[1,2]`, `[1]`},
		"digest for text": {`{"digest":"6d6162c958056ada159c54aa61cbdec7084096d6"}`, `{"digest":"none"}`},
		"message":         {`{"message":"CT is locked (disk)\n"}`, `{"message":"CT is locked (disk)"}`},
	} {
		if found := diffs(t, pair[0], pair[1]); len(found) == 0 {
			t.Errorf("%s: no difference found", name)
		}
	}
}
