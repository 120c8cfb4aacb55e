/** Labels that Prometheus itself adds to every series. */
const ownLabels = new Set(['instance', 'job']);

export interface MetricUse {
  /** As the expression names it, which may end with `_bucket`, `_sum` or `_count`. */
  readonly name: string;
  /** Labels that it must have: those in its braces, and those by which the expression groups. */
  readonly labels: ReadonlySet<string>;
}

/**
 * Reads which of the gateway's metrics an expression uses, and by which labels. Reads only what dashboards and alerts need:
 * every metric of an expression must have all labels that it groups by.
 */
export function readMetricUses(expression: string): MetricUse[] {
  const withoutTexts = expression.replaceAll(/"[^"]*"/g, '""');
  const grouped = [...withoutTexts.matchAll(/\b(?:by|on|group_left|group_right)\s*\(([^)]*)\)/g)]
    .flatMap(([, names]) => names!.split(','))
    .map((name) => name.trim());
  return [...withoutTexts.matchAll(/(model_gateway_\w+)(?:\{([^}]*)\})?/g)].map(([, name, matchers = '']) => {
    const matched = [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!);
    // Only the buckets of a histogram have `le`.
    const isLacking = (label: string): boolean =>
      label === '' || ownLabels.has(label) || (label === 'le' && !name!.endsWith('_bucket'));
    const labels = [...matched, ...grouped].filter((label) => !isLacking(label));
    return { name: name!, labels: new Set(labels) };
  });
}

/** The metrics of a text in Prometheus's format: names of series and the labels that they have. */
export function readSeries(text: string): Map<string, Set<string>> {
  const series = new Map<string, Set<string>>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (name === undefined) continue;
    const known = series.get(name) ?? new Set();
    for (const [, label] of labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) known.add(label!);
    series.set(name, known);
  }
  return series;
}
