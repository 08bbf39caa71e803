// Package acctest gives a test a Proxmox VE to work on: a real server when SANDBOX_ACC_ENDPOINT names one, else a lab of
// the test's own. The same tests run on both.
//
//	env := acctest.New(t)                       // endpoint, token, template, ranges: one owner and one vmid range per test
//	resource.ParallelTest(t, resource.TestCase{
//		ProtoV6ProviderFactories: acctest.Factories(provider.New("test")),
//		Steps: []resource.TestStep{{Config: env.ProviderConfig() + `resource "sandbox_container" …`}},
//	})
//
// New also prepares terraform-plugin-testing (which command line, no call home), so that `go test` needs no variable.
// When the test ends, whatever it left with its owner is destroyed, each guest after its marker was read back, and a
// test that passed but left something fails.
//
// Tests that can run only on a lab, because they inject faults or move time, call NeedsLab. Tests of something that a
// command line may lack call SkipUnless.
package acctest
