"""Names of generated code: what C, C++, their libraries, CMake, systems and the generators keep for themselves."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ShapeError
from ..function import checked_name

# letter case does not count: files of names that differ in it alone are one on some systems
_RESERVED = {
    "a keyword of C": """
        auto break case char const continue default do double else enum extern float for goto if inline int long
        register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
        while alignas alignof atomic bool complex generic imaginary noreturn thread_local asm fortran typeof
        true false nullptr constexpr static_assert
    """,
    "a keyword of C++": """
        and and_eq bitand bitor catch class co_await co_return co_yield compl concept const_cast consteval
        constinit decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq
        operator or or_eq private protected public reinterpret_cast requires static_cast template this throw try
        typeid typename using virtual wchar_t char8_t char16_t char32_t import module final override std
    """,
    "a header of C (<name.h> would be another file)": """
        assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
        stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time
        uchar wchar wctype
    """,
    "a header of the system (<name.h> would be another file)": """
        aio cpio dirent dlfcn endian fcntl features fmtmsg fnmatch ftw glob grp iconv langinfo libgen malloc
        memory monetary mqueue ndbm net netdb netinet nl_types poll pthread pwd regex sched search semaphore
        spawn strings stropts sys syslog tar termios trace ulimit unistd utime utmpx values wordexp windows
        winsock2 io conio direct process alloca byteswap elf err error getopt link obstack resolv ucontext alloc
    """,
    "a function or macro of C": """
        abort abs acos acosh aligned_alloc asctime asin asinh assert at_quick_exit atan atan2 atanh atexit atof
        atoi atol atoll bsearch btowc cabs cacos cacosh calloc carg casin casinh catan catanh cbrt ccos ccosh
        ceil cexp cimag clearerr clock clog conj copysign cos cosh cpow cproj creal csin csinh csqrt ctan ctanh
        ctime difftime div edom eilseq eof erange erf erfc errno exit exp exp2 expm1 fabs fclose fdim
        feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feof feraiseexcept ferror fesetenv
        fesetexceptflag fesetround fetestexcept feupdateenv fflush fgetc fgetpos fgets fgetwc fgetws file floor
        fma fmax fmin fmod fopen fpclassify fprintf fputc fputs fputwc fputws fread free freopen frexp fscanf
        fseek fsetpos ftell fwide fwprintf fwrite fwscanf gamma getc getchar getenv gets getwc getwchar gmtime
        hypot ilogb imaxabs imaxdiv infinity isalnum isalpha isblank iscntrl isdigit isfinite isgraph isinf
        islower isnan isnormal isprint ispunct isspace isupper iswalnum iswalpha iswblank iswcntrl iswctype
        iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit isxdigit j0 j1 jmp_buf jn labs
        ldexp ldiv lgamma llabs lldiv llrint llround localeconv localtime log log10 log1p log2 logb longjmp
        lrint lround malloc mblen mbrlen mbrtowc mbsinit mbsrtowcs mbstowcs mbtowc memchr memcmp memcpy memmove
        memset mktime modf nan nearbyint nextafter nexttoward null offsetof perror pow printf putc putchar puts
        putwc putwchar qsort quick_exit raise rand realloc remainder remove remquo rename rewind rint round
        scalbln scalbn scanf setbuf setlocale setvbuf signbit signgam sin sinh size_t snprintf sprintf sqrt
        srand sscanf stderr stdin stdout strcat strchr strcmp strcoll strcpy strcspn strerror strftime strlen
        strncat strncmp strncpy strpbrk strrchr strspn strstr strtod strtof strtoimax strtok strtol strtold
        strtoll strtoul strtoull strtoumax strxfrm swprintf swscanf system tan tanh tgamma time_t timespec_get
        tm tmpfile tmpnam tolower toupper towctrans towlower towupper trunc ungetc ungetwc va_arg va_copy va_end
        va_list va_start vfprintf vfscanf vfwprintf vfwscanf vprintf vscanf vsnprintf vsprintf vsscanf vswprintf
        vswscanf vwprintf vwscanf wcrtomb wcscat wcschr wcscmp wcscoll wcscpy wcscspn wcsftime wcslen wcsncat
        wcsncmp wcsncpy wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstof wcstoimax wcstok wcstol wcstold
        wcstombs wcstoul wcstoumax wcsxfrm wctob wctomb wctrans wmemchr wmemcmp wmemcpy wmemmove wmemset wprintf
        wscanf y0 y1 yn
    """,
    "a function of the system": """
        a64l accept access acct adjtime alarm alphasort arc4random arc4random_buf arc4random_uniform bcmp bcopy
        bind brk bzero cfgetispeed cfgetospeed cfmakeraw cfree cfsetispeed cfsetospeed cfsetspeed chdir chmod
        chown chroot clearenv clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime clone
        close closedir closefrom confstr connect creat crypt ctermid daemon dirfd dlclose dlerror dlopen dlsym
        dprintf drand48 drem dup dup2 dysize ecvt endusershell environ erand48 execl execle execlp execv execve
        execvp exp10 explicit_bzero faccessat fchdir fchmod fchmodat fchown fchownat fcntl fcvt fdatasync fdopen
        fdopendir fexecve ffs ffsll fileno finite flock flockfile fmemopen fork fpathconf fseeko fstat fstatat
        fsync ftello ftruncate ftrylockfile funlockfile futimens futimes gcvt getcwd getdelim getdirentries
        getdomainname getdtablesize getegid getentropy geteuid getgid getgroups gethostid gethostname getitimer
        getline getloadavg getlogin getopt getpagesize getpass getpeername getpgid getpgrp getpid getppid getsid
        getsockname getsockopt getsubopt gettimeofday getuid getusershell getw getwd gsignal index initstate
        ioctl isatty isfdtype jrand48 kill killpg l64a lchmod lchown lcong48 lgammaf_r lgammal_r linkat listen
        lockf lrand48 lseek lstat lutimes madvise memccpy mincore mkdir mkdirat mkdtemp mkfifo mkfifoat mknod
        mknodat mkstemp mkstemps mktemp mlock mlockall mmap mount mprotect mrand48 msync munlock munlockall
        munmap nanosleep nice nrand48 on_exit open open_memstream openat opendir optarg optind pathconf pause
        pclose pipe popen posix_fadvise posix_fallocate posix_madvise posix_memalign pow10 pread profil pselect
        psiginfo psignal pthread_kill pthread_sigmask putenv putw pwrite qecvt qfcvt qgcvt random read readdir
        readlink readlinkat readv reallocarray realpath recv recvfrom recvmsg renameat revoke rewinddir rindex
        rmdir rpmatch sbrk scalb scandir seed48 seekdir select send sendmsg sendto setbuffer setdomainname
        setegid setenv seteuid setgid sethostid sethostname setitimer setlinebuf setlogin setpgid setpgrp
        setregid setreuid setsid setsockopt setstate settimeofday setuid setusershell shm_open shm_unlink
        shutdown sigaction sigaddset sigaltstack sigblock sigdelset sigemptyset sigfillset siggetmask
        siginterrupt sigismember significand sigpending sigprocmask sigqueue sigreturn sigsetmask sigstack
        sigsuspend sigtimedwait sigwait sigwaitinfo sleep sockatmark socket socketpair srand48 srandom ssignal
        stat stpcpy stpncpy strcasecmp strdup strncasecmp strndup strnlen strsep strsignal strtoq strtouq swab
        symlink symlinkat sync syscall sysconf tcdrain tcflow tcflush tcgetattr tcgetpgrp tcgetsid tcsendbreak
        tcsetattr tcsetpgrp telldir tempnam timegm timelocal timer_create timer_delete timer_getoverrun
        timer_gettime timer_settime times truncate tsearch ttyname ttyslot tzset ualarm umask uname unlink
        unlinkat unsetenv usleep utimensat utimes valloc vdprintf vfork vhangup wait wait3 wait4 waitid waitpid
        write writev
    """,
    "a library that programs link": "c m dl gcc gcc_s rt stdc util quadmath gomp crt kernel32 user32 msvcrt",
    "a name that CMake keeps": """
        all all_build clean cmakelists depend edit_cache experimental help install list_install_components
        nightly continuous package package_source preinstall project rebuild_cache run_tests test uninstall
        zero_check
    """,
    "a device of Windows": """
        con prn aux nul com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8
        lpt9
    """,
    "a name in the files that go with the code": """
        main harness loop plant measured in out x u t c p m k i r mem p_mem m_mem now due begun seconds room
        make_room x_start x_next memory_next objective violation period steps nx nu
    """,
    "what names of CasADi's own code start with": "casadi",
}
_KIND = {name: kind for kind, names in reversed(_RESERVED.items()) for name in names.split()}


def checked_c_name(where: str, name: str, hint: str) -> str:
    """The name, if generated files, symbols and targets can be called after it; ShapeError that says what it clashes
    with otherwise, and the hint.

    Letters, digits and single underscores, starting with a letter; no keyword, header or function of C, C++ and the
    system, nothing that CMake keeps, no symbol or file of the generators; in any letter case.
    """
    try:
        checked_name(name)
    except ShapeError:
        allowed = "letters, digits and single underscores, starting with a letter"
        problem = f"{name!r} cannot name code, since it cannot start names in C: {allowed}"
        raise ShapeError(f"{where}: {problem}; {hint}") from None
    kind = _reserved(name)
    if kind:
        raise ShapeError(f"{where}: {name!r} is taken by C or CMake: it is {kind}; {hint}")
    return name


def _reserved(name: str) -> str | None:
    """What this name is already; None if it is free."""
    name = name.lower()
    for stem in (name, *(name.removesuffix(end) for end in ("f", "l", "_t", "_r", "_l", "_unlocked"))):
        kind = _KIND.get(stem)
        if kind and (stem == name or "function" in kind):
            return kind
    return None


# what C and C++ do not let a member of a struct be called, and common macros; here letter case counts
_NO_MEMBERS = {
    *_RESERVED["a keyword of C"].split(), *_RESERVED["a keyword of C++"].split(), "_Bool", "NULL", "NAN", "INFINITY",
    "EOF", "BUFSIZ", "I", "errno", "stdin", "stdout", "stderr", "linux", "unix", "i386", "assert", "TRUE", "FALSE",
    "HUGE_VAL", "EDOM", "ERANGE", "RAND_MAX",
    "casadi_real", "casadi_int", "min", "max", "near", "far", "interface", "small", "nothing",
} - {"module", "import", "final", "override", "std"}  # fmt: skip


def field_name(port: str) -> str:
    """What the member of a struct is called that stands for a port: as the port, with an underscore behind it where C
    or C++ keep the name, or where it ends with one, so that names that differ stay different."""
    return f"{port}_" if port in _NO_MEMBERS or port.endswith("_") else port


# what CasADi, the header and the self-test add to the name of a function
_ADDED = """
    alloc_mem init_mem free_mem checkout release incref decref n_in n_out default_in name_in name_out
    sparsity_in sparsity_out work work_bytes casadi_version casadi_int_size casadi_real_size SZ_ARG SZ_RES SZ_IW
    SZ_W n_in_of n_out_of in_at out_at columns t in out init evaluate
""".split()


def check_apart(where: str, names: Iterable[str]) -> None:
    """ShapeError if a C function of these names would be called like what comes with another one, as f_work with f."""
    known = set(names)
    for name in names:
        for added in _ADDED:
            if f"{name}_{added}" in known:
                problem = f"{name}_{added} would be a function, and belong to {name}"
                raise ShapeError(f"{where}: {problem}; give one of them another name, as od.function(..., name=...)")
