/** The version of the package: a bundled program has no package.json to read it from. */
export const VERSION = "0.1.0";
