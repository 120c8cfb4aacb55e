import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** The dashboards and alerts of deploy/. */

export const alertsPath = 'deploy/prometheus/alerts.yaml';
const dashboardFolder = 'deploy/grafana';

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Target {
  readonly refId: string;
  readonly datasource: { readonly type: string; readonly uid: string };
  readonly expr: string;
  readonly legendFormat: string;
}

export interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly datasource: { readonly type: string; readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly Target[];
}

export interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query: string | { readonly query: string };
}

export interface Dashboard {
  readonly file: string;
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
}

export const alerts = (
  parse(readFileSync(alertsPath, 'utf8')) as { groups: readonly { rules: readonly Alert[] }[] }
).groups.flatMap(({ rules }) => rules);

export const dashboards = readdirSync(dashboardFolder).map((file): Dashboard => {
  const dashboard = JSON.parse(readFileSync(join(dashboardFolder, file), 'utf8')) as Omit<Dashboard, 'file'>;
  return { file, ...dashboard };
});

export interface Query {
  /** The file, and the panel or alert. */
  readonly place: string;
  readonly expr: string;
}

/** Replaces the variables of Grafana by values, as Grafana does. */
const fillIn = (expr: string): string =>
  expr
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$__range', '1m')
    .replaceAll(/\$(?:model|upstream)\b/g, '.*');

/** Every query of every dashboard and alert, as Prometheus gets it. */
export const queries: readonly Query[] = [
  ...dashboards.flatMap(({ file, panels }) =>
    panels.flatMap(({ title, targets }) =>
      targets.map(({ expr, refId }) => ({ place: `${file}: ${title} ${refId}`, expr: fillIn(expr) })),
    ),
  ),
  ...alerts.map(({ alert, expr }) => ({ place: `${alertsPath}: ${alert}`, expr })),
];
