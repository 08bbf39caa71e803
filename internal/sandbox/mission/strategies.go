package mission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

const (
	// answerBytes is how much of a member's answer is kept.
	answerBytes = 16 << 10
	// othersBytes is how much of the others' answers goes into a prompt, all together.
	othersBytes = 24 << 10
	scoreLimit  = 10 * time.Minute
)

// prompt puts the role before a task, and what others have said behind it.
func prompt(role, task string, said ...string) string {
	if words, ok := roles[role]; ok {
		role = words
	}
	parts := append([]string{role, task}, said...)
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n")
}

// cut keeps the end of a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return "[…] " + text
}

// pipeline has each member go on from what the one before said. It ends with
// the first that doesn't succeed, unless it is never to stop.
func (m *mission) pipeline(ctx context.Context) error {
	before := ""
	for _, member := range m.Members {
		status, err := m.turn(ctx, member, 1, "work", prompt(member.Role, m.Task, before))
		if err != nil {
			return err
		}
		m.answer = m.results[member.Name].Answer
		if status != agentrun.Succeeded && m.Stop != StopNever || m.ends(status) {
			return nil
		}
		before = fmt.Sprintf("Before you, %s has worked on this. The end of what was said:\n\n%s", called(member), cut(m.answer, othersBytes))
	}
	return nil
}

// called is how members know each other.
func called(m Member) string {
	if _, ok := roles[m.Role]; ok {
		return fmt.Sprintf("%s (%s)", m.Name, m.Role)
	}
	return m.Name
}

// debate has everybody answer in rounds, each with the others' answers of the
// round before, and the judge close.
func (m *mission) debate(ctx context.Context) error {
	var speakers []Member
	var judge *Member
	for i, member := range m.Members {
		if member.Name == m.Judge {
			judge = &m.Members[i]
		} else {
			speakers = append(speakers, member)
		}
	}
	for round := 1; round <= m.rounds() && !m.stopped; round++ {
		said := map[string]string{}
		for _, member := range speakers {
			if round > 1 {
				said[member.Name] = m.said(speakers, member.Name)
			}
		}
		err := m.together(ctx, speakers, func(ctx context.Context, member Member) (agentrun.Status, error) {
			return m.turn(ctx, member, round, "work", prompt(member.Role, m.Task, said[member.Name]))
		})
		if err != nil {
			return err
		}
	}
	if judge == nil {
		m.answer = m.said(speakers, "")
		return nil
	}
	role := judge.Role
	if role == "" {
		role = "judge"
	}
	_, err := m.turn(ctx, *judge, m.rounds(), "judgement", prompt(role, m.Task, m.said(speakers, judge.Name)))
	m.answer = m.results[judge.Name].Answer
	return err
}

// said is what everybody but one has answered.
func (m *mission) said(members []Member, but string) string {
	var b strings.Builder
	for _, member := range members {
		if member.Name == but {
			continue
		}
		fmt.Fprintf(&b, "The answer of %s:\n\n%s\n\n", called(member), cut(m.results[member.Name].Answer, othersBytes/len(members)))
	}
	return strings.TrimSpace(b.String())
}

// arena has everybody do the same task from the same files, and scores them.
func (m *mission) arena(ctx context.Context) error {
	for round := 1; round <= m.rounds() && !m.stopped; round++ {
		scores := make(map[string]float64, len(m.Members))
		err := m.together(ctx, m.Members, func(ctx context.Context, member Member) (agentrun.Status, error) {
			status, err := m.turn(ctx, member, round, "work", prompt(member.Role, m.Task))
			if err != nil || status == agentrun.Lost {
				return status, err
			}
			score, err := m.score(ctx, member, round)
			if err == nil && score != nil {
				m.mu.Lock()
				scores[member.Name] = *score
				m.mu.Unlock()
			}
			return status, err
		})
		if err != nil {
			return err
		}
		m.award(scores)
	}
	return nil
}

// score runs the score command where a member has worked; nil when it says none.
func (m *mission) score(ctx context.Context, member Member, round int) (*float64, error) {
	s := agentrun.Spec{Name: fmt.Sprintf("%s/%s/score-%d", m.Name, member.Name, round), Command: agentrun.Command{Script: m.ScoreCommand},
		User: member.Run.User, Dir: member.Run.Dir, Environment: member.Run.Environment, Secrets: member.Run.Secrets, Timeout: scoreLimit}
	report, err := m.follow(ctx, member, s)
	if err != nil {
		return nil, err
	}
	if report.Status == agentrun.Succeeded {
		report.Score = lastNumber(report.OutputTail)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(member.Name, round, "score", report)
	return report.Score, nil
}
