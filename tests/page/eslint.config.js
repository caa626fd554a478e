import js from "@eslint/js";
import globals from "globals";

const rules = {
  eqeqeq: "error",
  "no-shadow": "error",
  "no-unused-vars": ["error", { ignoreRestSiblings: true }], // {left, out, ...kept}
  "no-var": "error",
  "prefer-const": "error",
};

export default [
  { ...js.configs.recommended, rules: { ...js.configs.recommended.rules, ...rules } },
  { files: ["src/**/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["tests/**/*.js"], languageOptions: { globals: globals.node } },
];
