# "acme-web-app-de5c45c1", for every URL of the repository.
output "workspace" {
  value = provider::sandbox::repo_slug("git@github.com:Acme/web-app.git")
}
