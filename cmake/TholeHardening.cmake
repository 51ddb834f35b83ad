# What makes a bug in memory handling an end of the process and not a way in. On by default for gcc and clang;
# tests/install/hardening.sh looks at the installed files. -DTHOLE_HARDENING=OFF leaves it to a distribution's own flags.
#   stack-protector-strong, stack-clash-protection   a stack that is overwritten, or jumped over, is noticed
#   _FORTIFY_SOURCE      copies into objects of known size are checked; needs optimisation
#   relro, now           what the dynamic loader has written is read-only before main()
#   pie                  programs are loaded at random addresses, as libraries are
include(CheckCCompilerFlag)
include(CheckPIESupported)
option(THOLE_HARDENING "Stack protector, FORTIFY_SOURCE, stack-clash protection, RELRO, BIND_NOW, PIE" ON)

function(thole_harden target)
  if(NOT THOLE_HARDENING)
    return()
  endif()
  foreach(flag -fstack-protector-strong -fstack-clash-protection)
    string(MAKE_C_IDENTIFIER "THOLE_HAS${flag}" has)
    check_c_compiler_flag(${flag} ${has})
    if(${has})
      target_compile_options(${target} INTERFACE ${flag})
    endif()
  endforeach()
  if(NOT THOLE_SANITIZE) # sanitizers check more, and replace the functions that fortification replaces
    target_compile_options(${target} INTERFACE
      $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-D_FORTIFY_SOURCE=3>)
  endif()
  target_link_options(${target} INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endfunction()

if(THOLE_HARDENING)
  check_pie_supported(LANGUAGES C) # then CMAKE_POSITION_INDEPENDENT_CODE links programs with -pie
endif()
