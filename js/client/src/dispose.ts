/** `Symbol.dispose` and `Symbol.asyncDispose` where the engine has none yet, as compilers of `using` expect them. */

for (const name of ["dispose", "asyncDispose"] as const)
  if (Symbol[name] === undefined)
    Object.defineProperty(Symbol, name, { value: Symbol.for(`Symbol.${name}`) });

export const ready = true;
