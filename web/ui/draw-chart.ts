import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { onThemeChange } from '../lib/theme.ts';
import type { ChartProps } from './chart.tsx';
import { chooseTicks } from './choose-ticks.ts';

const colorNames = ['--accent', '--series-2', '--series-3'] as const;
const axisFont = '12px system-ui, sans-serif';

/** Draws a chart that follows the width of its place and the theme. Returns a function that removes it. */
export function drawChart(place: HTMLElement, props: ChartProps): () => void {
  let plot = createPlot(place, props);
  const resizing = new ResizeObserver(() => plot.setSize(sizeOf(place)));
  resizing.observe(place);
  const stop = onThemeChange(() => {
    plot.destroy();
    plot = createPlot(place, props);
  });
  return () => {
    stop();
    resizing.disconnect();
    plot.destroy();
  };
}

const sizeOf = ({ clientWidth, clientHeight }: HTMLElement) => ({ width: clientWidth, height: clientHeight });

function createPlot(place: HTMLElement, { times, formatTime, series, kind = 'bars' }: ChartProps): uPlot {
  const styles = getComputedStyle(document.documentElement);
  const read = (name: string): string => styles.getPropertyValue(name).trim();
  // The first and the last bar are as wide as the others.
  const margin = kind === 'bars' ? ((times[1] ?? 0) - (times[0] ?? 0)) / 2 || 1 : 0;
  const axis = {
    stroke: read('--soft'),
    font: axisFont,
    grid: { stroke: read('--line'), width: 1 },
    ticks: { show: false },
  };
  const values = series.flatMap((one) => one.values).filter((value) => value !== null);
  const ticks = chooseTicks(Math.max(0, ...values), values.every(Number.isInteger));
  const options: uPlot.Options = {
    ...sizeOf(place),
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false } },
    padding: [12, 8, 0, 0],
    scales: {
      x: { time: false, range: (_, min, max) => [min - margin, max + margin] },
      y: { range: [0, ticks.at(-1)!] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 34,
        splits: (plot) => chooseTimes(times, plot.width),
        values: (_, splits) => splits.map(formatTime),
      },
      {
        ...axis,
        size: 64,
        splits: () => ticks,
        values: (_, splits) => splits.map((value) => series[0]!.format(value)),
      },
    ],
    series: [
      {},
      ...series.map(({ name }, i) => {
        const color = read(colorNames[i % colorNames.length]!);
        return {
          label: name,
          stroke: color,
          width: kind === 'bars' ? 0 : 2,
          ...(kind === 'bars' ? { fill: color } : {}),
          points: { show: false },
          ...(kind === 'bars' ? { paths: uPlot.paths.bars!({ size: [0.62, 28], radius: 0.15 }) } : {}),
        };
      }),
    ],
    plugins: [valueTip(formatTime, series)],
  };
  return new uPlot(
    options,
    [[...times], ...series.map(({ values }) => [...values])] as uPlot.AlignedData,
    place,
  );
}

const labelWidth = 90;

/** The times that are named: those of values, as many as fit. */
function chooseTimes(times: readonly number[], width: number): number[] {
  const step = Math.max(1, Math.ceil((times.length * labelWidth) / Math.max(width, labelWidth)));
  // Not the first and the last, whose names would be cut.
  return times.filter((_, i) => i % step === Math.floor(step / 2));
}

/** Shows the values under the pointer. The table below the chart has them for everybody else. */
function valueTip(formatTime: ChartProps['formatTime'], series: ChartProps['series']): uPlot.Plugin {
  const tip = document.createElement('div');
  tip.className = 'chart-tip';
  return {
    hooks: {
      init: (plot) => {
        tip.hidden = true;
        plot.over.append(tip);
      },
      setCursor: (plot) => {
        const { idx, left = 0 } = plot.cursor;
        tip.hidden = idx === null || idx === undefined || left < 0;
        if (tip.hidden) return;
        const lines = series.map(({ name, format }, i) => {
          const value = plot.data[i + 1]?.[idx!] ?? null;
          return `${name}: ${value === null ? '–' : format(value)}`;
        });
        tip.textContent = [formatTime(plot.data[0][idx!]!), ...lines].join('\n');
        const isRight = left > plot.over.clientWidth / 2;
        tip.style.left = isRight ? 'auto' : `${left + 12}px`;
        tip.style.right = isRight ? `${plot.over.clientWidth - left + 12}px` : 'auto';
      },
    },
  };
}
