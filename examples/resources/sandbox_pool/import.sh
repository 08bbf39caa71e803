# The pool's name.
terraform import sandbox_pool.warm agents-warm
