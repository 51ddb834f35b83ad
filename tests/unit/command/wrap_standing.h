/* What the command finds of instances whose code does not run: one that is called "stuck" is. */
