package pve

import (
	"encoding/json"
	"testing"
)

type sample struct {
	VMID  int      `pve:"vmid,must"`
	CPUs  float64  `pve:"cpus"`
	On    bool     `pve:"on"`
	Name  string   `pve:"name"`
	Tags  *string  `pve:"tags"`
	Limit *int64   `pve:"limit"`
	List  []string `pve:"list"`
	Extra Extra
}

func TestValuesAreTakenInEveryShapeTheServerSendsThem(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"vmid":105,"cpus":0.5,"on":1,"name":"a","tags":"x","limit":7}`,
		`{"vmid":"105","cpus":"0.5","on":"1","name":"a","tags":"x","limit":"7"}`,
		`{"vmid":105.0,"cpus":5e-1,"on":true,"name":"a","tags":"x","limit":7.0}`,
	} {
		var s sample
		if err := decodeObject([]byte(text), &s); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if s.VMID != 105 || s.CPUs != 0.5 || !s.On || s.Name != "a" || s.Tags == nil || *s.Tags != "x" || s.Limit == nil || *s.Limit != 7 {
			t.Errorf("%s: %+v", text, s)
		}
	}
	var s sample
	if err := decodeObject([]byte(`{"vmid":1,"name":17,"tags":null,"limit":null,"cpus":null,"on":null}`), &s); err != nil {
		t.Fatal(err)
	}
	if s.Name != "17" || s.Tags != nil || s.Limit != nil || s.On {
		t.Errorf("%+v", s)
	}
}

func TestUnknownKeysAndOddValuesAreKept(t *testing.T) {
	t.Parallel()
	var s sample
	if err := decodeObject([]byte(`{"vmid":1,"new-key":{"a":[1]},"cpus":"many","list":{"not":"a list"}}`), &s); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"new-key": `{"a":[1]}`, "cpus": `"many"`, "list": `{"not":"a list"}`} {
		if got := string(s.Extra[key]); got != want {
			t.Errorf("%s: %s", key, got)
		}
	}
}

func TestWhatIdentifiesAnEntryMustBeThere(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{}`, `{"vmid":null}`, `{"vmid":"x"}`, `{"vmid":1.5}`, `{"vmid":{}}`, `[]`, `"x"`, `null`} {
		var s sample
		if err := decodeObject([]byte(text), &s); err == nil {
			t.Errorf("%s was taken: %+v", text, s)
		}
	}
}

// Whatever a server sends, reading it must not panic.
func FuzzAnswersNeverPanic(f *testing.F) {
	for _, text := range []string{
		`{"vmid":105,"status":"running","ha":{"managed":1}}`, `{"net0":"name=eth0,,=,a=b=c","lxc":[["a","b"]],"mp0":""}`,
		`{"rootfs":null,"net0":5,"features":true}`, `[]`, `null`, `{"lxc":[[1],{}]}`, `{"ip-addresses":[null,{"prefix":5}],"inet":"x/y"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		_ = decodeObject(text, new(LXCStatus))
		_ = decodeObject(text, new(Resource))
		_ = decodeObject(text, new(Pool))
		var w wireInterface
		if decodeObject(text, &w) == nil {
			_ = w.normalise()
		}
		cfg, err := ParseLXCConfig(text)
		if err != nil {
			return
		}
		_, _, _, _, _ = cfg.Nets(), cfg.Mounts(), cfg.Devices(), cfg.Unused(), cfg.Tags()
		_, _ = cfg.RootFS().SizeBytes()
		_, _ = cfg.RootFS().Storage(), cfg.Features().Flag("nesting")
		for _, n := range cfg.Nets() {
			_ = ParseProperties(n.String())
		}
		_, _ = json.Marshal(cfg.Raw)
	})
}
