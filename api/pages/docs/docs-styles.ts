/** The page's style: system fonts, one accent colour, light or dark according to the reader's system. */
export const docsStyles = `
:root {
  color-scheme: light dark;
  --page: #fcfcfb; --raised: #f4f5f4; --line: #e3e6e5; --ink: #1c2124; --soft: #5b666c; --accent: #0c6b66;
  --get: #1f5fae; --post: #20703f; --put: #8d5a0b; --delete: #ad2f35; --required: #9c4a12;
  --key: #0b5f8a; --text: #2f6b32; --value: #8a4b08;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #131618; --raised: #1a1e21; --line: #2b3135; --ink: #e4e8e9; --soft: #98a4aa; --accent: #63c7bd;
    --get: #7eb2f2; --post: #74c795; --put: #dcab5c; --delete: #f08d90; --required: #e5a16d;
    --key: #82bfe6; --text: #9ccb96; --value: #e0b078;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.6 var(--sans); }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
code, pre { font-family: var(--mono); font-size: .875em; }
p { margin: 0 0 .9em; }
p code, td code { overflow-wrap: anywhere; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 1rem; top: 1rem; z-index: 3; padding: .4rem .8rem; background: var(--page); }

aside { display: none; }
.menu { position: sticky; top: 0; z-index: 2; background: var(--page); border-bottom: 1px solid var(--line); }
.menu summary { padding: .8rem 1.25rem; font-weight: 650; cursor: pointer; }
.menu[open] { max-height: 100vh; overflow-y: auto; }
.menu nav { padding: 0 1.25rem 1.25rem; }
nav ul { list-style: none; margin: 0 0 1.1rem; padding: 0; }
nav p { margin: 0 0 .2rem; font-size: .8125rem; font-weight: 650; }
nav p a { color: var(--ink); }
nav li a { display: flex; gap: .55rem; align-items: baseline; padding: .2rem 0; color: var(--soft); font-size: .875rem; }
nav li a:hover { color: var(--ink); text-decoration: none; }
nav code { font-size: .8125rem; overflow-wrap: anywhere; }
nav .method { flex: 0 0 2.6rem; }

main { padding: 0 1.25rem 6rem; }
.chapter { padding-top: 3.5rem; }
.chapter.first { padding-top: 2rem; }
h1, h2, h3, h4 { line-height: 1.25; margin: 0; font-weight: 650; letter-spacing: -.01em; text-wrap: balance; }
h1 { font-size: 1.875rem; margin-bottom: 1.2rem; }
h2 { font-size: 1.5rem; margin-bottom: .5rem; }
h3 { font-size: 1.1875rem; }
h3 a { color: inherit; }
h4 { font-size: .9375rem; margin: 1.8rem 0 .5rem; }
.version { font-size: .875rem; font-weight: 500; color: var(--soft); letter-spacing: 0; margin-left: .3rem; }
.lead { color: var(--soft); max-width: 44rem; }
.prose { min-width: 0; max-width: 46rem; }
.prose > p { max-width: 42rem; }
.examples { min-width: 0; margin-top: 1.5rem; }

.operation { padding-top: 2rem; margin-top: 1.25rem; border-top: 1px solid var(--line); }
.operation header { margin-bottom: 1.1rem; }
.address { margin: .5rem 0 0; overflow-wrap: anywhere; }
.access { margin: .15rem 0 0; font-size: .875rem; color: var(--soft); }
.method { font: 650 .6875rem/1 var(--mono); text-transform: uppercase; letter-spacing: .03em; color: var(--soft); }
.address .method { font-size: .8125rem; margin-right: .35rem; }
.method.get { color: var(--get); }
.method.post { color: var(--post); }
.method.put, .method.patch { color: var(--put); }
.method.delete { color: var(--delete); }

table { width: 100%; border-collapse: collapse; font-size: .875rem; line-height: 1.5; }
thead th { padding: 0 .9rem .35rem 0; font-size: .75rem; font-weight: 500; color: var(--soft); text-align: left; }
tbody > tr { border-top: 1px solid var(--line); }
.inner thead { position: absolute; clip-path: inset(50%); height: 1px; overflow: hidden; }
.inner thead tr { border: 0; }
tbody th, td { padding: .55rem .9rem .55rem 0; text-align: left; vertical-align: top; font-weight: 400; }
tbody th code { font-weight: 600; overflow-wrap: anywhere; }
tr > :last-child { padding-right: 0; }
.fields { table-layout: fixed; }
.fields tr:not(.inner) > :first-child { width: 30%; }
.fields tr:not(.inner) > :nth-child(2) { width: 23%; }
tr.inner { border-top: 0; }
tr.inner > td { padding: 0 0 .7rem; }
.inner details { border-left: 2px solid var(--line); padding-left: .9rem; }
.inner summary { font-size: .8125rem; color: var(--soft); cursor: pointer; }
.inner summary:hover { color: var(--ink); }
.inner details[open] > summary { margin-bottom: .5rem; }
.inner table { margin-bottom: .2rem; }
.required, .optional { display: block; font-size: .75rem; color: var(--required); }
.optional { color: var(--soft); }
.type { color: var(--soft); }
.type span { display: block; }
.bound { font-size: .8125rem; }
.choices { display: block; }
.choices code { display: inline-block; margin: .2rem .25rem 0 0; padding: 0 .35rem; background: var(--raised);
  border: 1px solid var(--line); border-radius: 4px; }
.chapter > .errors { margin-top: 1.5rem; }
.errors .status { width: 4rem; font-family: var(--mono); font-size: .8125rem; color: var(--soft); }
.errors tbody th { width: 13.5rem; }
.errors tr:target { background: var(--raised); }
.translation { display: block; color: var(--soft); font-size: .8125rem; }
.retry { font-size: .75rem; color: var(--accent); }

.more { margin-top: 1.1rem; border: 1px solid var(--line); border-radius: 8px; padding: 0 .9rem; }
.more > summary { padding: .55rem 0; cursor: pointer; font-size: .875rem; font-weight: 600; }
.more[open] { padding-bottom: .4rem; }
.statuses { margin-left: .4rem; font-weight: 400; }
.statuses span { margin-right: .3rem; font: .75rem var(--mono); color: var(--soft); }

.code { margin: 0 0 1rem; border: 1px solid var(--line); border-radius: 8px; background: var(--raised); overflow: hidden; }
.code figcaption { padding: .4rem .9rem; border-bottom: 1px solid var(--line); font-size: .75rem; color: var(--soft); }
.code pre { margin: 0; padding: .8rem .9rem; max-height: 32rem; overflow: auto; font-size: 13px; line-height: 1.55; }
.code pre code { font-size: inherit; }
.wrapped pre code { white-space: pre-wrap; overflow-wrap: anywhere; }
.key { color: var(--key); }
.text { color: var(--text); }
.value { color: var(--value); }

@media (max-width: 37.99rem) {
  h1 { font-size: 1.5rem; }
  .fields thead { position: absolute; clip-path: inset(50%); height: 1px; overflow: hidden; }
  .fields, .fields tbody, .fields tr, .fields tbody th, .fields td { display: block; }
  .fields tr:not(.inner) > :nth-child(n) { width: auto; }
  .fields tbody th:first-child { padding: .6rem 0 0; }
  .fields td { padding: .1rem 0; }
  .fields td:last-child { padding-bottom: .6rem; }
  .fields tr.inner > td { padding: 0 0 .6rem; }
  .required, .optional { display: inline; margin-left: .4rem; }
  .type span { display: inline; margin-right: .5rem; }
  .errors thead { position: absolute; clip-path: inset(50%); height: 1px; overflow: hidden; }
  .errors, .errors tbody { display: block; }
  .errors tr { display: grid; grid-template-columns: 2.6rem 1fr; padding: .5rem 0; }
  .errors tbody th, .errors td, .errors .status { width: auto; padding: 0; }
  .errors td:last-child { grid-column: 2; }
}
@media (min-width: 62rem) {
  .menu { display: none; }
  body { display: grid; grid-template-columns: 17.5rem minmax(0, 1fr); }
  aside { display: block; position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 2.1rem 1.25rem 2rem 1.75rem;
    border-right: 1px solid var(--line); scrollbar-width: thin; }
  .brand { margin-bottom: 1.2rem; font-weight: 650; }
  main { padding: 0 2.5rem 8rem; max-width: 92rem; }
}
@media (min-width: 80rem) {
  .columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 26rem); gap: 2.5rem; align-items: start; }
  .examples { position: sticky; top: 1.5rem; margin-top: 0; max-height: calc(100vh - 3rem); overflow-y: auto;
    scrollbar-width: thin; }
}
@media print {
  aside, .menu { display: none; }
  body { display: block; }
}
`;
