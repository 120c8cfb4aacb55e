import { useEffect, useRef, useState } from 'preact/hooks';
import { useCommon } from '../lib/language.tsx';

export interface ChartSeries {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly format: (value: number) => string;
}

export interface ChartProps {
  /** What the chart shows, in a sentence: the name of its figure. */
  readonly title: string;
  /** Times in seconds since 1970. */
  readonly times: readonly number[];
  readonly formatTime: (seconds: number) => string;
  readonly series: readonly ChartSeries[];
  readonly kind?: 'bars' | 'lines';
  /** In pixels. */
  readonly height?: number;
}

/** A chart, drawn by uPlot, which is loaded with the first one. The same numbers are in a table that can be opened. */
export function Chart(props: ChartProps) {
  const { title, times, formatTime, series, height = 220 } = props;
  const common = useCommon();
  const place = useRef<HTMLDivElement>(null);
  const [isTableOpen, setIsTableOpen] = useState(false);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    let isGone = false;
    let destroy = (): void => undefined;
    import('./draw-chart.ts').then(
      ({ drawChart }) => {
        if (!isGone && place.current !== null) destroy = drawChart(place.current, latest.current);
      },
      // Without the script, the table remains.
      () => setIsTableOpen(true),
    );
    return () => {
      isGone = true;
      destroy();
    };
  }, [times, series, height]);
  return (
    <figure class="chart">
      <div ref={place} class="chart-place" style={{ height: `${height}px` }} role="img" aria-label={title} />
      <details onToggle={(event) => setIsTableOpen(event.currentTarget.open)}>
        <summary>{common('asTable')}</summary>
        {isTableOpen && (
          <div class="table-scroll" role="region" aria-label={title} tabIndex={0}>
            <table class="table">
              <thead>
                <tr>
                  <th scope="col">{common('time')}</th>
                  {series.map(({ name }) => (
                    <th key={name} scope="col" class="number">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {times.map((time, i) => (
                  <tr key={time}>
                    <th scope="row">{formatTime(time)}</th>
                    {series.map(({ name, values, format }) => (
                      <td key={name} class="number">
                        {formatCell(values[i] ?? null, format)}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </details>
    </figure>
  );
}

const formatCell = (value: number | null, format: (value: number) => string): string =>
  value === null ? '–' : format(value);
