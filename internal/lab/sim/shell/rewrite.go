package shell

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Variables that rewriting keeps in a script's own scope, so that subshells inherit them and don't leak theirs.
const (
	hidden   = "__sim_"
	varPID   = hidden + "pid"   // stands for $$
	varPPID  = hidden + "ppid"  // stands for $PPID
	varBG    = hidden + "bg"    // stands for $!
	varJob   = hidden + "job"   // process number of the background job that we are in
	varJobs  = hidden + "jobs"  // "123=g1 124=g2": process numbers and the interpreter's names
	varUmask = hidden + "umask" // octal
)

// Commands that only rewritten scripts contain. The directory doesn't exist in any guest.
const (
	internal      = "/.sim/"
	internalUmask = internal + "umask"
	internalSpawn = internal + "spawn"
	internalAdopt = internal + "adopt"
	internalDone  = internal + "done"
	internalPwd   = internal + "pwd"
	internalType  = internal + "type"
	internalWhich = internal + "which"
	internalExec  = internal + "exec"
	internalInner = internal + "inner" // marks an exec that replaces a subshell, which is no process here
)

// asynchronous is what `x &` becomes, with x in place of the colons. Input is empty, as in a shell without job
// control; a job's end takes it out of the process table also where the script says set -e.
const asynchronous = `{ ` + varBG + `=$(` + internalSpawn + `); { ` + varJob + `=$` + varBG + `; ` + varJobs + `=; ` + internalAdopt +
	`; case $- in *e*) set +e; ( set -e; : ) ;; *) ( : ) ;; esac; ` + internalDone + ` $?; } & ` +
	varJobs + `="$` + varJobs + ` $` + varBG + `=$!"; }`

var errProcessSubstitution = errors.New("process substitution is not supported by the simulated shell")

// rewrite changes a parsed script so that what the interpreter would ask of the lab's host is asked of the guest:
// $$, $PPID and $! are process numbers of the guest, a umask is the script's, and `x &` is a process that can be waited
// for and killed by its number. It returns the functions that the script declares.
func rewrite(f syntax.Node) (functions []string, err error) {
	var jobs []*syntax.Stmt
	var inner []bool // for each node that we are in, whether it is in a subshell
	syntax.Walk(f, func(n syntax.Node) bool {
		if n == nil {
			inner = inner[:len(inner)-1]
			return true
		}
		sub := len(inner) > 0 && inner[len(inner)-1]
		switch n := n.(type) {
		case *syntax.Subshell, *syntax.CmdSubst:
			sub = true
		case *syntax.BinaryCmd:
			sub = sub || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.FuncDecl:
			sub = false
		}
		inner = append(inner, sub)
		switch n := n.(type) {
		case *syntax.ProcSubst:
			err = errProcessSubstitution
		case *syntax.FuncDecl:
			if n.Name != nil {
				functions = append(functions, n.Name.Value)
			}
		case *syntax.ParamExp:
			if n.Param != nil {
				switch n.Param.Value {
				case "$":
					rename(n, varPID)
				case "PPID":
					rename(n, varPPID)
				case "!":
					rename(n, varBG)
				}
			}
		case *syntax.Stmt:
			if c, ok := n.Cmd.(*syntax.CallExpr); ok {
				umaskToAssignment(c)
				if sub && len(c.Args) > 1 && c.Args[0].Lit() == "exec" {
					c.Args = append([]*syntax.Word{c.Args[0], word(&syntax.Lit{Value: internalInner})}, c.Args[1:]...)
				}
			}
			if n.Background && n.Cmd != nil {
				jobs = append(jobs, n)
			}
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	for _, s := range jobs { // after the walk, which must not come to what is made here
		background(s)
	}
	return functions, nil
}

func rename(p *syntax.ParamExp, name string) {
	param := *p.Param
	param.Value = name
	p.Param, p.Short = &param, false
}

// umaskToAssignment turns `umask 077` into an assignment, which has the scope that a umask has.
func umaskToAssignment(c *syntax.CallExpr) {
	if len(c.Args) != 2 || c.Args[0].Lit() != "umask" || strings.HasPrefix(c.Args[1].Lit(), "-") {
		return
	}
	call := &syntax.CallExpr{Args: []*syntax.Word{word(&syntax.Lit{Value: internalUmask}), c.Args[1]}}
	value := word(&syntax.CmdSubst{Stmts: []*syntax.Stmt{{Cmd: call}}})
	c.Assigns = append(c.Assigns, &syntax.Assign{Name: &syntax.Lit{Value: varUmask}, Value: value})
	c.Args = nil
}

func word(p ...syntax.WordPart) *syntax.Word { return &syntax.Word{Parts: p} }

// background replaces `x &` by the asynchronous template.
func background(s *syntax.Stmt) {
	f, err := syntax.NewParser().Parse(strings.NewReader(asynchronous), "")
	if err != nil {
		panic("shell: own template: " + err.Error())
	}
	block := f.Stmts[0]
	outer, ok := block.Cmd.(*syntax.Block)
	if !ok {
		panic("shell: own template isn't a block")
	}
	job := outer.Stmts[1]
	body := &syntax.Stmt{Position: s.Position, Cmd: s.Cmd, Negated: s.Negated}
	syntax.Walk(job, func(n syntax.Node) bool {
		if sub, ok := n.(*syntax.Subshell); ok {
			sub.Stmts[len(sub.Stmts)-1] = body
			return false
		}
		return true
	})
	null := &syntax.Redirect{Op: syntax.RdrIn, Word: word(&syntax.Lit{Value: "/dev/null"})}
	job.Redirs = append([]*syntax.Redirect{null}, s.Redirs...)
	*s = syntax.Stmt{Position: s.Position, Cmd: block.Cmd}
}
