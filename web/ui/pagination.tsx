import { useCommon } from '../lib/language.tsx';
import { Button } from './button.tsx';

/** @param page counts from 1 */
export function Pagination({
  page,
  pages,
  onChange,
}: {
  readonly page: number;
  readonly pages: number;
  readonly onChange: (page: number) => void;
}) {
  const common = useCommon();
  if (pages <= 1) return null;
  return (
    <nav class="pagination" aria-label={common('pages')}>
      <Button
        size="small"
        icon="left"
        aria-label={common('previousPage')}
        disabled={page <= 1}
        onClick={() => onChange(page - 1)}
      />
      <span aria-live="polite">{common('pageOf', { page, pages })}</span>
      <Button
        size="small"
        icon="right"
        aria-label={common('nextPage')}
        disabled={page >= pages}
        onClick={() => onChange(page + 1)}
      />
    </nav>
  );
}
