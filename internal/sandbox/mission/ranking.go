package mission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

// lastNumber is the number that stands alone in the last line that isn't empty.
func lastNumber(output string) *float64 {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	n, err := strconv.ParseFloat(strings.TrimSpace(lines[len(lines)-1]), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return nil
	}
	return &n
}

// award gives the round to the highest score; those who share it share the win.
func (m *mission) award(scores map[string]float64) {
	var winners []string
	best := math.Inf(-1)
	for name, score := range scores {
		r := m.results[name]
		if r.Score == nil || score > *r.Score {
			r.Score = &score
		}
		switch {
		case score > best:
			best, winners = score, []string{name}
		case score == best:
			winners = append(winners, name)
		}
	}
	for _, name := range winners {
		m.results[name].Wins += 1 / float64(len(winners))
	}
	for _, r := range m.results {
		r.WinRate = r.Wins / float64(m.rounds())
	}
}

// byRank orders by wins, then by the best score; who has none stands last.
func byRank(a, b Result) int {
	score := func(r Result) float64 {
		if r.Score == nil {
			return math.Inf(-1)
		}
		return *r.Score
	}
	return cmp.Or(cmp.Compare(b.Wins, a.Wins), cmp.Compare(score(b), score(a)))
}

// report sums the mission up.
func (m *mission) report(timedOut bool) *Report {
	r := &Report{SchemaVersion: SchemaVersion, Name: m.Name, Strategy: m.Strategy, Members: []Result{}, Runs: m.done, Answer: m.answer}
	succeeded := 0
	for _, member := range m.Members {
		result := *m.results[member.Name]
		if result.Status == agentrun.Succeeded {
			succeeded++
		}
		r.Members = append(r.Members, result)
	}
	if m.Strategy == Arena {
		m.rank(r)
	}
	good := succeeded == len(m.Members)
	switch {
	case m.Strategy == Arena:
		good = r.Winner != ""
	case m.Strategy == Debate && m.Judge != "":
		good = m.results[m.Judge].Status == agentrun.Succeeded
	case m.Stop == StopFirstSuccess:
		good = succeeded > 0
	}
	switch {
	case timedOut:
		r.Status = agentrun.TimedOut
	case good:
		r.Status = agentrun.Succeeded
	default:
		r.Status = agentrun.Failed
	}
	return r
}

// rank numbers the members of an arena; equals share a rank.
func (m *mission) rank(r *Report) {
	ordered := slices.Clone(r.Members)
	slices.SortStableFunc(ordered, byRank)
	ranks := map[string]int{}
	for i, result := range ordered {
		ranks[result.Name] = i + 1
		if i > 0 && byRank(ordered[i-1], result) == 0 {
			ranks[result.Name] = ranks[ordered[i-1].Name]
		}
		r.Ranking = append(r.Ranking, result.Name)
	}
	for i := range r.Members {
		r.Members[i].Rank = ranks[r.Members[i].Name]
	}
	if first := ordered[0]; first.Score != nil {
		r.Winner, r.Answer = first.Name, first.Answer
	}
}

// Standing is one line of a leaderboard.
type Standing struct {
	Name           string // the agent's, or the member's or run's where it was no agent
	Runs           int
	Succeeded      int
	SuccessRate    float64
	Wins           float64
	WinRate        float64  // of the arena rounds that it took part in
	MeanScore      *float64 // of the best scores of its missions, nil without any
	MeanDurationMS int64
	Rank           int // equals share one

	rounds   float64
	scores   []float64
	duration int64
}

// Leaderboard sums reports of runs and missions (their JSON) up, the best first:
// by win rate, success rate, mean score and then the shorter mean duration.
func Leaderboard(reports []string) ([]Standing, error) {
	all := map[string]*Standing{}
	for i, text := range reports {
		if err := count(all, text); err != nil {
			return nil, fmt.Errorf("report %d: %w", i+1, err)
		}
	}
	out := make([]Standing, 0, len(all))
	for _, s := range all {
		s.SuccessRate = float64(s.Succeeded) / float64(max(1, s.Runs))
		s.MeanDurationMS = s.duration / int64(max(1, s.Runs))
		if s.rounds > 0 {
			s.WinRate = s.Wins / s.rounds
		}
		if len(s.scores) > 0 {
			sum := 0.0
			for _, score := range s.scores {
				sum += score
			}
			mean := sum / float64(len(s.scores))
			s.MeanScore = &mean
		}
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Standing) int { return cmp.Or(byStanding(a, b), strings.Compare(a.Name, b.Name)) })
	for i := range out {
		out[i].Rank = i + 1
		if i > 0 && byStanding(out[i-1], out[i]) == 0 {
			out[i].Rank = out[i-1].Rank
		}
	}
	return out, nil
}

func byStanding(a, b Standing) int {
	mean := func(s Standing) float64 {
		if s.MeanScore == nil {
			return math.Inf(-1)
		}
		return *s.MeanScore
	}
	return cmp.Or(cmp.Compare(b.WinRate, a.WinRate), cmp.Compare(b.SuccessRate, a.SuccessRate), cmp.Compare(mean(b), mean(a)), cmp.Compare(a.MeanDurationMS, b.MeanDurationMS))
}

func count(all map[string]*Standing, text string) error {
	var r struct {
		Report
		Agent    *agentrun.AgentInfo `json:"agent"`
		Attempts []json.RawMessage   `json:"attempts"`
		Score    *float64            `json:"score"`
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	if r.SchemaVersion != SchemaVersion {
		return fmt.Errorf("schema_version is %d, this provider reads %d: is it the report of a run or a mission?", r.SchemaVersion, SchemaVersion)
	}
	entrant := func(agent, name string) *Standing {
		name = cmp.Or(agent, name)
		if all[name] == nil {
			all[name] = &Standing{Name: name}
		}
		return all[name]
	}
	if r.Strategy == "" {
		agent := ""
		if r.Agent != nil {
			agent = r.Agent.Name
		}
		s := entrant(agent, r.Name)
		s.add(r.Status, r.DurationMS, r.Score)
		return nil
	}
	rounds := map[int]bool{}
	for _, run := range r.Runs {
		rounds[run.Round] = true
	}
	for _, m := range r.Members {
		if m.Status == Skipped {
			continue
		}
		s := entrant(m.Agent, m.Name)
		s.add(m.Status, m.DurationMS, m.Score)
		s.Wins += m.Wins
		if r.Strategy == Arena {
			s.rounds += float64(len(rounds))
		}
	}
	return nil
}

func (s *Standing) add(status agentrun.Status, duration int64, score *float64) {
	s.Runs++
	s.duration += duration
	if status == agentrun.Succeeded {
		s.Succeeded++
	}
	if score != nil {
		s.scores = append(s.scores, *score)
	}
}
