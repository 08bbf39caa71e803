package audit

import "testing"

func TestTheScoreIsTheShareOfWhatPassedHeldByCaps(t *testing.T) {
	t.Parallel()
	f := func(s Status, severity Severity, limit Grade) Finding {
		return Finding{Check: Check{ID: "X", Severity: severity, Cap: limit}, Status: s}
	}
	for name, c := range map[string]struct {
		findings []Finding
		points   int
		grade    Grade
	}{
		"nothing":                    {nil, 0, GradeF},
		"only what doesn't apply":    {[]Finding{f(NotApplicable, Critical, "")}, 0, GradeF},
		"all":                        {[]Finding{f(Passed, Critical, ""), f(Passed, Low, "")}, 100, GradeAPlus},
		"low failed":                 {[]Finding{f(Passed, Critical, ""), f(Passed, Critical, ""), f(Passed, Critical, ""), f(Failed, Low, "")}, 96, GradeA},
		"unknown counts as failed":   {[]Finding{f(Passed, Medium, ""), f(Unknown, Medium, "")}, 50, GradeF},
		"what doesn't apply is out":  {[]Finding{f(Passed, Medium, ""), f(NotApplicable, Critical, GradeF)}, 100, GradeAPlus},
		"a cap":                      {[]Finding{f(Passed, Critical, ""), f(Passed, Critical, ""), f(Passed, Critical, ""), f(Passed, Critical, ""), f(Passed, Critical, ""), f(Passed, Critical, ""), f(Passed, Critical, ""), f(Passed, Critical, ""), f(Passed, Critical, ""), f(Failed, Low, GradeF)}, 59, GradeF},
		"an unknown high holds at A": {append(many(40, f(Passed, Critical, "")), f(Unknown, High, "")), 96, GradeA},
	} {
		points, grade, _ := score(c.findings)
		if points != c.points || grade != c.grade {
			t.Errorf("%s: %d %s, want %d %s", name, points, grade, c.points, c.grade)
		}
	}
}

func many(n int, f Finding) []Finding {
	out := make([]Finding, n)
	for i := range out {
		out[i] = f
	}
	return out
}

// The published caps: a privileged container can't pass B, a readable secret is an F.
func TestHardCaps(t *testing.T) {
	t.Parallel()
	c := goodContainer()
	c.Unprivileged = false
	f := goodGuest(t)
	if r := judgeAll(f.system(), c, "", f.o); r.Grade != GradeB {
		t.Errorf("an otherwise perfect privileged container: %s, %d points", r.Grade, r.Score)
	}
	f = goodGuest(t)
	f.put("home/agent/.aws/credentials", "x", 0o600)
	if r := judgeAll(f.system(), goodContainer(), "", f.o); r.Grade != GradeF {
		t.Errorf("an otherwise perfect system with a secret: %s, %d points", r.Grade, r.Score)
	}
}

func TestGradesAreOrdered(t *testing.T) {
	t.Parallel()
	for i, g := range Grades() {
		if got, ok := ParseGrade(string(g)); !ok || got != g || !g.AtLeast(g) {
			t.Errorf("%s", g)
		}
		for _, worse := range Grades()[i+1:] {
			if !g.AtLeast(worse) || worse.AtLeast(g) {
				t.Errorf("%s and %s", g, worse)
			}
		}
	}
	if _, ok := ParseGrade("E"); ok || Grade("").AtLeast(GradeF) || GradeA.AtLeast("") {
		t.Error("a grade that there isn't")
	}
	least := 101
	for _, b := range bands {
		if b.most != least-1 {
			t.Errorf("%s ends at %d, the next begins at %d", b.grade, b.most, least)
		}
		least = b.least
	}
	if least != 0 {
		t.Error("the grades don't reach 0")
	}
}
