# complete.zsh FILE LINE: what a zsh that knows nothing but the completion in FILE shows when TAB is typed behind LINE.
zmodload zsh/zpty
zpty -b shell 'TERM=dumb zsh -f -i'
zpty -w shell 'PS1=; PS2=; RPS1=; unsetopt prompt_sp beep; autoload -U compinit; compinit -u -D'
zpty -w shell "LISTMAX=1000; source $1; print rea''dy"
said=
repeat 100; do
    zpty -r -t shell line && said+=$line || sleep 0.05
    [[ $said != *ready* ]] || break
done
said=
zpty -w -n shell "$2"$'\t'
repeat 3; do
    sleep 0.5
    while zpty -r -t shell line; do said+=$line; done
    zpty -w -n shell $'\t'
done
zpty -d shell
print -r -- "$said"
