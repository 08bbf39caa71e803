# The container's id and the absolute path.
terraform import sandbox_file.settings 100007/root/.config/agent/settings.json
