/* The page's files are modules though no package.json beside them says so: browsers need none. */

import { register } from "node:module";

const hooks = `export const load = (url, context, next) =>
  next(url, url.includes("/lab/page/") ? { ...context, format: "module" } : context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
