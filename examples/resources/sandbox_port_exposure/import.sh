# The container's id and the port in it; the node may stand before them.
terraform import sandbox_port_exposure.web 100007/8080
