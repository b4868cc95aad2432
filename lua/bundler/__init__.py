"""The bundler: it reads the scripts of `lua/` and writes the manifest and what each client knows of the scripts.

    cd lua
    python -m bundler                 write the generated files
    python -m bundler --check         exit 1 when a generated file is stale, naming it
    python -m bundler --render DIR    write each script as it reaches the server (for luacheck)

`header.py` and `signature.py` read the header of a script and hold it against the code. `library.py` puts the functions of
`lua/lib/` in front that the script calls. `generated.py` fills the templates of `templates/`: a folder for each language, with a
template for each generated file and `values.toml`, which has the language's types and how its values are read and written.
"""
