/* The instances whose code does not run, as the command finds them: one that is called "stuck" is. */
