"""`oc-dyn completion SHELL`: what Tab offers, as a script of bash, zsh or fish, made of the parser itself."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

SHELLS = ("bash", "zsh", "fish")
FILES, FOLDERS = "files", "folders"


@dataclass
class Values:
    """What may follow: words, and whether names of files or folders may, too."""

    words: tuple[str, ...] = ()
    paths: str = ""  # FILES, FOLDERS or none


@dataclass
class Command:
    """name: as typed. options: {option: what its value may be, None for a flag}; told: {option or "": help}."""

    name: str
    options: dict[str, Values | None] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    positional: Values = field(default_factory=Values)


def commands_of(parser: argparse.ArgumentParser, words: dict[str, tuple[str, ...]]) -> list[Command]:
    """The commands of a parser. words: {name of an argument, or "command name": what may stand there}."""
    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    summaries = {a.dest: a.help or "" for a in group._choices_actions}
    out = []
    for name, sub in group.choices.items():
        command = Command(name, told={"": summaries.get(name, "")})
        for action in sub._actions:
            values = _values(action, words.get(f"{name} {action.dest}", words.get(action.dest, ())))
            for option in action.option_strings:
                command.options[option] = values if action.nargs != 0 else None
                command.told[option] = (action.help or "").split(";")[0].split(":")[0].replace("%(default)s", "default")
            if not action.option_strings and values is not None:
                command.positional = values
        out.append(command)
    return out


def _values(action: argparse.Action, known: tuple[str, ...]) -> Values:
    if action.choices is not None:
        return Values(tuple(map(str, action.choices)))
    parts = action.metavar.split("|") if isinstance(action.metavar, str) else []
    paths = FOLDERS if "DIR" in parts or "FOLDER" in parts else FILES if {"FILE", "URDF"} & set(parts) else ""
    return Values(known, paths)


def script(shell: str, program: str, commands: list[Command]) -> str:
    """The script, to be read by the shell when it starts."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](program, commands)


def _quoted(text: str) -> str:
    """A word of a shell in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def _function(program: str) -> str:
    return "_" + program.replace("-", "_")


def _offers(values: Values) -> str:
    """A line of bash, and of zsh under bashcompinit, that offers values."""
    lines = []
    if values.words:
        lines.append(_words(values.words, "+="))
    if values.paths:
        lines.append(f'COMPREPLY+=($(compgen -{"d" if values.paths == FOLDERS else "f"} -- "$cur"))')
    return "; ".join(lines) or ":"


def _words(words: tuple[str, ...], sets: str = "=") -> str:
    return f'COMPREPLY{sets}($(compgen -W {_quoted(chr(10).join(words))} -- "$cur"))'


def _bash(program: str, commands: list[Command]) -> str:
    name, out = _function(program), []
    out.append(f'# Tab after {program}: put this into ~/.bashrc\n#   eval "$({program} completion bash)"')
    out.append(f"{name}() {{")
    out.append('    local cur="${COMP_WORDS[COMP_CWORD]}" prev="" command="${COMP_WORDS[1]}"')
    out.append('    [ "$COMP_CWORD" -gt 0 ] && prev="${COMP_WORDS[COMP_CWORD-1]}"')
    out.append("    COMPREPLY=()\n    local IFS=$'\\n'")  # names of files have blanks
    words = _words(("--help", "--version", *(c.name for c in commands)))
    out.append(f'    if [ "$COMP_CWORD" -le 1 ]; then {words}; return; fi')
    out.append('    case "$command $prev" in')
    for c in commands:
        for option, values in c.options.items():
            if values is not None:
                out.append(f"        {_quoted(f'{c.name} {option}')}) {_offers(values)}; return ;;")
    out.append("    esac")
    out.append('    case "$command" in')
    for c in commands:
        options, others = _offers(Values(tuple(c.options))), _offers(c.positional)
        out.append(f'        {c.name}) if [ "${{cur#-}}" != "$cur" ]; then {options}; else {others}; fi ;;')
    out.append("    esac\n}")
    out.append(f"complete -o filenames -F {name} {program}")
    return "\n".join(out) + "\n"


def _zsh(program: str, commands: list[Command]) -> str:
    head = f'# Tab after {program}: put this into ~/.zshrc, below compinit\n#   eval "$({program} completion zsh)"\n'
    load = "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n"
    bash = _bash(program, commands).split("\n", 2)[2]
    # zsh splits no results of its own accord, and counts from 1 unless it is told to do as ksh does
    bash = bash.replace("() {\n", "() {\n    emulate -L ksh; setopt shwordsplit\n", 1)
    return head + load + bash


def _fish(program: str, commands: list[Command]) -> str:
    out = [f"# Tab after {program}: {program} completion fish > ~/.config/fish/completions/{program}.fish"]
    out.append(f"complete -c {program} -f")
    top = f"complete -c {program} -n __fish_use_subcommand"
    out += [f"{top} -l help -d 'tell more'", f"{top} -l version -d 'print the version'"]
    for c in commands:
        out.append(f"{top} -a {c.name} -d {_quoted(c.told[''])}")
        here = f"complete -c {program} -n '__fish_seen_subcommand_from {c.name}'"
        out += [line for line in [_fish_values(here, c.positional)] if line]
        for option, values in c.options.items():
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            told = f" -d {_quoted(c.told[option])}" if c.told.get(option) else ""
            if values is None:
                out.append(f"{here} {kind}{told}")
            else:
                out.append(f"{_fish_values(f'{here} {kind} -r{told}', values) or f'{here} {kind} -x{told}'}")
    return "\n".join(out) + "\n"


def _fish_values(start: str, values: Values) -> str:
    words = f" -a {_quoted(' '.join(values.words))}" if values.words else ""
    if values.paths == FOLDERS:
        words = f" -a '(__fish_complete_directories)'{' -f' if not values.words else ''}"
    paths = " -F" if values.paths == FILES else ""
    return f"{start}{paths}{words}" if words or paths else ""
