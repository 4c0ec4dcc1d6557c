@rem The npm scripts begin with the shell's exec, which cmd.exe does not have. It finds this file in its place.
@%*
