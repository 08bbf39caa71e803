package audit

// Grade is a report's mark, A+ to F.
type Grade string

// The grades, best first.
const (
	GradeAPlus Grade = "A+"
	GradeA     Grade = "A"
	GradeB     Grade = "B"
	GradeC     Grade = "C"
	GradeD     Grade = "D"
	GradeF     Grade = "F"
)

// bands are the least and the most points of each grade.
var bands = []struct {
	grade       Grade
	least, most int
}{{GradeAPlus, 97, 100}, {GradeA, 90, 96}, {GradeB, 80, 89}, {GradeC, 70, 79}, {GradeD, 60, 69}, {GradeF, 0, 59}}

// Grades lists the grades, best first.
func Grades() []Grade {
	out := make([]Grade, len(bands))
	for i, b := range bands {
		out[i] = b.grade
	}
	return out
}

// ParseGrade reads a grade; false when there is none of that name.
func ParseGrade(s string) (Grade, bool) {
	for _, b := range bands {
		if string(b.grade) == s {
			return b.grade, true
		}
	}
	return "", false
}

// AtLeast says whether g is as good as least, or better. No grade is not.
func (g Grade) AtLeast(least Grade) bool {
	have, want := g.rank(), least.rank()
	return have >= 0 && want >= 0 && have <= want
}

func (g Grade) rank() int {
	for i, b := range bands {
		if b.grade == g {
			return i
		}
	}
	return -1
}

func (g Grade) most() int {
	if i := g.rank(); i >= 0 {
		return bands[i].most
	}
	return 0
}

func gradeOf(score int) Grade {
	for _, b := range bands {
		if score >= b.least {
			return b.grade
		}
	}
	return GradeF
}

// Applied is a cap that holds a score down.
type Applied struct {
	ID    string // of the check
	Grade Grade
}

// score weighs findings: of the weight of all that apply, the share that passed,
// in per cent, rounded down; what is unknown counts as not passed. A failed check
// with a cap holds the score at the top of its cap's grade; an unknown check that
// is critical or high holds it at A. Nothing checked is no score.
func score(findings []Finding) (points int, grade Grade, caps []Applied) {
	all, good := 0, 0
	for _, f := range findings {
		switch f.Status {
		case Passed:
			good += weights[f.Severity]
			all += weights[f.Severity]
		case Failed, Unknown:
			all += weights[f.Severity]
		}
		switch {
		case f.Status == Failed && f.Cap != "":
			caps = append(caps, Applied{f.ID, f.Cap})
		case f.Status == Unknown && (f.Severity == Critical || f.Severity == High):
			caps = append(caps, Applied{f.ID, GradeA})
		}
	}
	if all == 0 {
		return 0, GradeF, nil
	}
	points = good * 100 / all
	for _, c := range caps {
		points = min(points, c.Grade.most())
	}
	return points, gradeOf(points), caps
}
