import { useQuery } from '@tanstack/preact-query';
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, call } from '../../lib/api.ts';
import { listImageSources, Thumbnails } from './shared/images.tsx';
import { readResponse } from './shared/work.ts';

const maxShown = 4;

/** The images of a job that has succeeded. Their addresses are only in its response, which is read once it is in view. */
export function JobImages({ id }: { readonly id: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [isSeen, setIsSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setIsSeen(true);
    });
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, []);
  const { data } = useQuery({
    queryKey: ['job-images', id],
    queryFn: async ({ signal }) => {
      const { response } = await call(
        api.GET('/v1/jobs/{job_id}', { params: { path: { job_id: id } }, signal }),
      );
      const known = response === null ? null : readResponse(response);
      return known?.kind === 'images' ? listImageSources(known.body.data) : [];
    },
    enabled: isSeen,
    staleTime: Infinity,
  });
  return (
    <div ref={place} class="jobs-images">
      {data !== undefined && <Thumbnails sources={data.slice(0, maxShown)} size="small" />}
    </div>
  );
}
